from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.tfgrpo.scripted import JSON, Endpoint, Reply, completion, refusal, serving
from tests.tfgrpo.test_pace import Clock
from tfgrpo.configuration import Model, Price
from tfgrpo.errors import ModelError, RequestRefused
from tfgrpo.llm import Llm, Patience
from tfgrpo.memo import Memo
from tfgrpo.usage import Ledger

QUICK = Patience(attempts=4, wait=0.001)
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def memo(tmp_path: Path) -> Iterator[Memo]:
    made = Memo(tmp_path / "memo")
    yield made
    made.close()


def llm(model: Model, **settings: Any) -> Llm:
    return Llm(model, **{"ledger": Ledger(), "patience": QUICK, **settings})


async def test_the_answer_comes_with_its_tokens() -> None:
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model()) as model:
        answer = await model.complete(HELLO, stage="s")
    assert (answer.text, answer.prompt_tokens, answer.completion_tokens) == ("hi", 10, 5)


async def test_the_key_goes_into_the_header() -> None:
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(api_key="k-1")) as model:
        await model.complete(HELLO, stage="s")
    assert endpoint.headers[0]["Authorization"] == "Bearer k-1"


async def test_a_finished_call_is_not_made_again(memo: Memo) -> None:
    async with serving(lambda _: "hi") as endpoint:
        for _ in range(2):
            async with llm(endpoint.model(), memo=memo) as model:
                answer = await model.complete(HELLO, stage="s", temperature=0.5, seed=1)
    assert (len(endpoint.requests), answer.text, answer.replayed) == (1, "hi", True)


async def test_another_sample_is_another_call(memo: Memo) -> None:
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(), memo=memo) as model:
        for sample in range(3):
            await model.complete(HELLO, stage="s", sample=sample)
    assert len(endpoint.requests) == 3


async def test_another_model_is_another_call(memo: Memo) -> None:
    async with serving(lambda _: "hi") as endpoint:
        for name in ("a", "b"):
            async with llm(endpoint.model(name), memo=memo) as model:
                await model.complete(HELLO, stage="s")
    assert len(endpoint.requests) == 2


async def test_a_replay_costs_nothing_and_is_counted_apart(memo: Memo) -> None:
    ledger = Ledger()
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(), memo=memo, ledger=ledger) as model:
        await model.complete(HELLO, stage="s")
        await model.complete(HELLO, stage="s")
    total = ledger.total()
    assert (total.calls, total.replayed, total.tokens) == (1, 1, 15)


async def test_the_memo_holds_no_key(memo: Memo) -> None:
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(api_key="k-secret"), memo=memo) as model:
        await model.complete(HELLO, stage="s")
    files = [path.read_bytes() for path in memo.directory.rglob("*") if path.is_file()]
    assert not any(b"k-secret" in content for content in files)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_passing_failure_is_tried_again(status: int) -> None:
    replies: list[Reply] = [refusal(status, "later"), "hi"]
    async with serving(lambda _: replies.pop(0)) as endpoint, llm(endpoint.model()) as model:
        assert (await model.complete(HELLO, stage="s")).text == "hi"


async def test_the_time_that_retry_after_asks_for_is_waited() -> None:
    replies: list[Reply] = [refusal(429, "later", retry_after="0.2"), "hi"]
    async with serving(lambda _: replies.pop(0)) as endpoint, llm(endpoint.model()) as model:
        before = asyncio.get_running_loop().time()
        await model.complete(HELLO, stage="s")
        assert asyncio.get_running_loop().time() - before >= 0.2


async def test_retries_end() -> None:
    async with serving(lambda _: refusal(503, "down")) as endpoint, llm(endpoint.model()) as model:
        with pytest.raises(ModelError, match="503"):
            await model.complete(HELLO, stage="s")
    assert len(endpoint.requests) == 4


async def test_a_wrong_key_fails_at_once_and_ends_all_further_calls() -> None:
    async with serving(lambda _: refusal(401, "bad key k-1")) as endpoint, llm(endpoint.model(api_key="k-1")) as model:
        for _ in range(2):
            with pytest.raises(ModelError, match="api_key") as caught:
                await model.complete(HELLO, stage="s")
    assert (len(endpoint.requests), "k-1" in str(caught.value)) == (1, False)


async def test_a_refused_request_leaves_the_others_alone() -> None:
    def reply(request: JSON) -> Reply:
        return refusal(400, "too long") if len(request["messages"][0]["content"]) > 10 else "hi"

    async with serving(reply) as endpoint, llm(endpoint.model()) as model:
        with pytest.raises(RequestRefused):
            await model.complete([{"role": "user", "content": "x" * 11}], stage="s")
        assert (await model.complete(HELLO, stage="s")).text == "hi"


@pytest.mark.parametrize("refused", ["response_format", "seed", "temperature"])
async def test_a_member_that_the_endpoint_refuses_is_left_out_from_then_on(refused: str) -> None:
    def reply(request: JSON) -> Reply:
        return refusal(400, "not supported", refused) if refused in request else "hi"

    async with serving(reply) as endpoint, llm(endpoint.model()) as model:
        for text in ("a", "b"):
            asked = [{"role": "user", "content": text}]
            await model.complete(asked, stage="s", temperature=1.0, seed=1, schema={"name": "n", "schema": {}})
    assert [refused in request for request in endpoint.requests] == [True, False, False]


async def test_a_host_that_is_not_there_is_named() -> None:
    model = Model(model="m", base_url="http://127.0.0.1:9/v1")
    async with llm(model, patience=Patience(2, 0.001)) as client:
        with pytest.raises(ModelError, match=r"127\.0\.0\.1:9"):
            await client.complete(HELLO, stage="s")


async def test_no_more_calls_run_at_once_than_allowed() -> None:
    running, most = 0, 0

    class Slow:
        async def ask(self, request: JSON) -> JSON:
            nonlocal running, most
            running, most = running + 1, max(most, running + 1)
            await asyncio.sleep(0)
            running -= 1
            return completion(request["messages"][0]["content"])

        async def close(self) -> None: ...

    model = Llm(Model(model="m", base_url="http://127.0.0.1:9/v1"), ledger=Ledger(), concurrency=3, endpoint=Slow())
    await asyncio.gather(*(model.complete([{"role": "user", "content": str(i)}], stage="s") for i in range(20)))
    assert most == 3


async def test_a_limit_on_rates_pauses_all_calls_and_asks_no_call_of_more() -> None:
    clock, asked = Clock(), []

    def reply(_: JSON) -> Reply:
        asked.append(clock.now())
        return refusal(429, "slow down", retry_after="20") if len(asked) <= 4 else "hi"

    async with serving(reply) as endpoint, llm(endpoint.model(), concurrency=4, clock=clock) as model:
        calls = (model.complete([{"role": "user", "content": str(n)}], stage="s") for n in range(12))
        assert {answer.text for answer in await asyncio.gather(*calls)} == {"hi"}
    assert (len(asked), [at for at in asked if 100.0 < at < 120.0]) == (16, [])


@pytest.mark.parametrize("provider", ["openai", "litellm"])
async def test_an_answer_that_leaves_nothing_makes_the_next_call_wait_for_the_reset(provider: str) -> None:
    clock = Clock()
    last = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "7s"}
    reply = lambda _: web.json_response(completion("hi"), headers=last)  # noqa: E731 - shorter than a function
    async with serving(reply) as endpoint:
        asked = endpoint.model() if provider == "openai" else through_litellm(endpoint)
        async with llm(asked, clock=clock) as model:
            for text in ("a", "b"):
                await model.complete([{"role": "user", "content": text}], stage="s")
    assert clock.now() == 107.0


async def test_a_limit_that_lets_others_through_uses_no_patience_up() -> None:
    answered: list[str] = []

    def reply(request: JSON) -> Reply:
        text = request["messages"][0]["content"]
        if text == "last" and len(answered) < 10:
            return refusal(429, "slow down", retry_after="1")
        answered.append(text)
        return "hi"

    async with serving(reply) as endpoint, llm(endpoint.model(), concurrency=2, clock=Clock()) as model:
        texts = ["last", *map(str, range(10))]
        await asyncio.gather(*(model.complete([{"role": "user", "content": text}], stage="s") for text in texts))
    assert (answered[-1], len(endpoint.requests) > 11 + QUICK.attempts) == ("last", True)


async def test_a_limit_that_does_not_end_is_an_error_after_so_many_attempts() -> None:
    clock = Clock()
    async with (
        serving(lambda _: refusal(429, "slow down", retry_after="60")) as endpoint,
        llm(endpoint.model(), clock=clock) as model,
    ):
        with pytest.raises(ModelError, match="429"):
            await model.complete(HELLO, stage="s")
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize(
    ("setting", "one", "other"),
    [("temperature", 0.1, 0.2), ("seed", 1, 2), ("schema", None, {"name": "s", "schema": {"type": "object"}})],
)
async def test_a_changed_setting_is_another_call(memo: Memo, setting: str, one: Any, other: Any) -> None:
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(), memo=memo) as model:
        for value in (one, other, one):
            await model.complete(HELLO, stage="s", **{setting: value})
    assert len(endpoint.requests) == 2


async def test_another_address_is_another_call_and_another_key_or_price_is_not(memo: Memo) -> None:
    async with serving(lambda _: "hi") as first, serving(lambda _: "hi") as second:
        priced = first.model(api_key="k-2", price=Price(prompt=1, completion=1))
        for one in (first.model(api_key="k-1"), second.model(), priced):
            async with llm(one, memo=memo) as model:
                await model.complete(HELLO, stage="s")
    assert (len(first.requests), len(second.requests)) == (1, 1)


async def test_an_answer_without_a_choice_is_a_refusal_of_this_request_alone() -> None:
    replies: list[Reply] = [{"choices": []}, "hi"]
    async with serving(lambda _: replies.pop(0)) as endpoint, llm(endpoint.model()) as model:
        with pytest.raises(RequestRefused, match="no choice"):
            await model.complete(HELLO, stage="s")
        assert (await model.complete(HELLO, stage="s")).text == "hi"


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b"[1]"])
async def test_what_is_no_completion_is_asked_for_again_and_then_an_error(body: bytes) -> None:
    async with serving(lambda _: web.Response(body=body)) as endpoint, llm(endpoint.model()) as model:
        with pytest.raises(ModelError, match="answered with something that is not"):
            await model.complete(HELLO, stage="s")
    assert len(endpoint.requests) == 4


async def test_a_key_that_an_error_repeats_is_in_no_message_even_where_it_is_cut() -> None:
    said = "x" * 295 + "k-very-secret"
    async with (
        serving(lambda _: refusal(403, said)) as endpoint,
        llm(endpoint.model(api_key="k-very-secret")) as model,
    ):
        with pytest.raises(ModelError) as caught:
            await model.complete(HELLO, stage="s")
    assert "k-ver" not in str(caught.value)


def through_litellm(endpoint: Endpoint) -> Model:
    return endpoint.model("openai/tester", provider="litellm", api_key="k-1")


async def test_litellm_is_asked_where_the_provider_says_so() -> None:
    async with serving(lambda _: "hi") as endpoint, llm(through_litellm(endpoint)) as model:
        assert (await model.complete(HELLO, stage="s", seed=3)).text == "hi"
    assert endpoint.requests[0]["model"] == "tester"


async def test_an_error_through_litellm_is_one_of_ours() -> None:
    async with serving(lambda _: refusal(401, "bad key k-1")) as endpoint, llm(through_litellm(endpoint)) as model:
        with pytest.raises(ModelError, match="api_key") as caught:
            await model.complete(HELLO, stage="s")
    assert "k-1" not in str(caught.value)


SCHEMA: JSON = {"name": "s", "schema": {"type": "object"}}


@pytest.mark.parametrize("status", [400, 404, 422, 501])
async def test_a_refusal_that_names_nothing_is_tried_without_what_is_optional(status: int) -> None:
    def reply(request: JSON) -> Reply:
        return refusal(status, "Bad Request") if "response_format" in request else "hi"

    async with serving(reply) as endpoint, llm(endpoint.model()) as model:
        first = await model.complete(HELLO, stage="s", schema=SCHEMA, seed=1)
        await model.complete(HELLO, stage="s", schema=SCHEMA, seed=2)
    assert (first.text, len(endpoint.requests)) == ("hi", 3)
    assert ["seed" in request for request in endpoint.requests] == [True, True, True]


async def test_a_request_that_is_refused_for_itself_says_what_was_said_first() -> None:
    async with serving(lambda _: refusal(400, "context too long")) as endpoint, llm(endpoint.model()) as model:
        with pytest.raises(RequestRefused, match="context too long"):
            await model.complete(HELLO, stage="s", schema=SCHEMA)


async def test_a_200_that_holds_an_error_is_tried_again() -> None:
    replies: list[Reply] = [{"error": {"message": "overloaded"}}, "hi"]
    async with serving(lambda _: replies.pop(0)) as endpoint, llm(endpoint.model()) as model:
        assert (await model.complete(HELLO, stage="s")).text == "hi"


async def test_an_answer_in_parts_is_read() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    said = {"choices": [{"message": {"role": "assistant", "content": parts}}]}
    async with serving(lambda _: said) as endpoint, llm(endpoint.model()) as model:
        assert (await model.complete(HELLO, stage="s")).text == "one two"


async def test_an_empty_answer_is_not_remembered_unless_it_is_a_result(memo: Memo) -> None:
    async with serving(lambda _: "") as endpoint:
        for may_be_empty in (False, False, True, True):
            async with llm(endpoint.model(), memo=memo) as model:
                await model.complete(HELLO, stage="s", may_be_empty=may_be_empty)
    assert len(endpoint.requests) == 3


async def test_a_forgotten_answer_is_asked_for_anew(memo: Memo) -> None:
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(), memo=memo) as model:
        await model.forget(await model.complete(HELLO, stage="s"))
        await model.complete(HELLO, stage="s")
    assert len(endpoint.requests) == 2


async def test_the_same_call_twice_at_once_is_made_once() -> None:
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model()) as model:
        answers = await asyncio.gather(*[model.complete(HELLO, stage="s") for _ in range(5)])
    assert (len(endpoint.requests), {answer.text for answer in answers}) == (1, {"hi"})


async def test_whoever_gives_up_waiting_leaves_the_answer_to_the_others() -> None:
    arrived = asyncio.Event()

    def reply(_: JSON) -> Reply:
        arrived.set()
        return "hi"

    async with serving(reply) as endpoint, llm(endpoint.model()) as model:
        first = asyncio.create_task(model.complete(HELLO, stage="s"))
        await arrived.wait()
        second = asyncio.create_task(model.complete(HELLO, stage="s"))
        first.cancel()
        assert (await second).text == "hi"
