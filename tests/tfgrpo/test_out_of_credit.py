"""What calls and commands do when the provider says that the account has no money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from tests.tfgrpo.scripted import JSON, Reply, refusal, serving
from tests.tfgrpo.test_llm import HELLO, llm, through_litellm
from tests.tfgrpo.test_main import prepared, result, run, tasks, version
from tests.tfgrpo.test_resuming import AT_ONCE, counting, training, undisturbed, whole_home
from tfgrpo.errors import OutOfCredit

NO_MONEY = {"error": {"message": "You exceeded your current quota.", "type": "insufficient_quota", "param": None}}


def no_money(_: JSON) -> web.Response:
    return web.json_response(NO_MONEY, status=429)


async def test_it_is_said_at_the_first_refusal_and_ends_all_further_calls() -> None:
    async with serving(no_money) as endpoint, llm(endpoint.model("m-1")) as model:
        for _ in range(2):
            with pytest.raises(OutOfCredit, match="no money left") as caught:
                await model.complete(HELLO, stage="s", temperature=1.0)
    assert (len(endpoint.requests), "m-1" in str(caught.value), endpoint.url in str(caught.value)) == (1, True, True)


@pytest.mark.parametrize("status", [402, 429])
async def test_it_is_known_through_litellm(status: int) -> None:
    said = web.json_response(NO_MONEY, status=status) if status != 402 else refusal(402, "Insufficient Balance")
    async with serving(lambda _: said) as endpoint, llm(through_litellm(endpoint)) as model:
        with pytest.raises(OutOfCredit):
            await model.complete(HELLO, stage="s")
    assert len(endpoint.requests) == 1


async def test_a_refusal_without_optional_members_is_heard_too() -> None:
    def reply(request: JSON) -> Reply:
        return refusal(400, "no") if "temperature" in request else no_money(request)

    async with serving(reply) as endpoint, llm(endpoint.model()) as model:
        with pytest.raises(OutOfCredit):
            await model.complete(HELLO, stage="s", temperature=1.0)


def until(calls: int, asked: Counter[str], refused: web.Response) -> Callable[[JSON], Reply]:
    """Answer so many calls, and count them; refuse whatever comes then."""
    answer = counting(asked)
    body, status = refused.body, refused.status

    def reply(request: JSON) -> Reply:
        if asked.total() < calls:
            return answer(request)
        return web.Response(body=body, status=status, content_type="application/json")

    return reply


@pytest.mark.parametrize("refused", [no_money({}), refusal(402, "Insufficient Balance")], ids=["429", "402"])
@pytest.mark.parametrize("calls", [0, 5, 15])
async def test_a_training_stops_at_once_and_goes_on_from_there(
    tmp_path: Path, refused: web.Response, calls: int
) -> None:
    asked: Counter[str] = Counter()
    async with serving(until(calls, asked, refused)) as endpoint:
        code, out, err = await run(tmp_path, *training(tmp_path), endpoint=endpoint)
        (left,) = await result(tmp_path, "runs", "list")
        rejected = len(endpoint.requests) - asked.total()
    assert (code, out, left["status"], rejected <= AT_ONCE) == (3, "", "stopped", True)
    last = err.splitlines()[-1]
    assert (endpoint.url in last, "no money left" in last, "same command" in last) == (True, True, True)
    whole, needed = await undisturbed(whole_home(tmp_path))
    # The memo knows an endpoint by its address.
    async with serving(counting(asked), port=endpoint.port) as endpoint:
        made = await result(tmp_path, *training(tmp_path), endpoint=endpoint)
    assert (made["experiences"], asked.total(), max(asked.values())) == (whole, needed, 1)


@pytest.mark.parametrize("more", [(), ("--ablate",)])
async def test_a_proof_stops_at_once(tmp_path: Path, more: tuple[str, ...]) -> None:
    prepared(tmp_path)
    version(tmp_path, "Say yes.", "Say it at once.")
    asked: Counter[str] = Counter()
    data = ("--data", tasks(tmp_path), "--grader", "exact")
    async with serving(until(5, asked, no_money({}))) as endpoint:
        code, _, err = await run(tmp_path, "evaluate", "--set", "s", *data, *more, endpoint=endpoint)
    assert (code, "no money left" in err, len(endpoint.requests) - asked.total() <= AT_ONCE) == (3, True, True)
