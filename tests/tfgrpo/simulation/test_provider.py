from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tfgrpo.simulation.loop import contrast_prompt, luck
from tfgrpo.simulation.provider import OPTIMIZER, POLICY, Completion, Provider
from tfgrpo.simulation.request import Refused
from tfgrpo.simulation.world import World

ROWS = World.draw(1).tasks(40, split="train")


def body(question: str, **members: Any) -> bytes:
    messages = [{"role": "user", "content": question}]
    return json.dumps({"model": POLICY, "messages": messages, **members}).encode()


def contrast(**members: Any) -> bytes:
    prompt = contrast_prompt([("I restated the units. I did not sort the totals.", 1.0), ("I sorted the totals.", 0.0)])
    messages = [{"role": "system", "content": "Stage: contrast"}, {"role": "user", "content": prompt}]
    return json.dumps({"model": OPTIMIZER, "messages": messages, **members}).encode()


def test_the_answers_are_the_same_in_any_order() -> None:
    requests = [body(row["question"]) for row in ROWS for _ in range(3)]
    mixed = requests.copy()
    luck(1).shuffle(mixed)
    first, second = Provider(1), Provider(1)
    one = sorted((request, first.answer(request).texts) for request in requests)
    other = sorted((request, second.answer(request).texts) for request in mixed)
    assert one == other


def test_repeated_samples_of_the_policy_differ() -> None:
    provider = Provider(1)
    assert len({provider.answer(body(ROWS[0]["question"])).texts for _ in range(20)}) > 15


def test_the_optimizer_is_a_function_of_the_request() -> None:
    provider = Provider(1)
    assert len({provider.answer(contrast()).texts for _ in range(10)}) == 1


def test_a_seed_in_the_request_gives_another_draw() -> None:
    provider = Provider(1)
    assert len({provider.answer(contrast(seed=seed)).texts for seed in range(10)}) > 3


def test_the_optimizer_knows_nothing_of_the_world() -> None:
    world = World.draw(1)
    plain, mirrored = Provider(1), Provider(1, world=world.flipped())
    requests = [contrast(seed=seed) for seed in range(20)]
    assert [plain.answer(one).texts for one in requests] == [mirrored.answer(one).texts for one in requests]


def test_optimizer_calls_do_not_change_what_the_policy_answers() -> None:
    alone, beside = Provider(1), Provider(1)
    for row in ROWS:
        beside.answer(contrast(seed=len(row["question"])))
        assert alone.answer(body(row["question"])).texts == beside.answer(body(row["question"])).texts


def test_streaming_says_the_same() -> None:
    request, streamed = body(ROWS[0]["question"]), body(ROWS[0]["question"], stream=True)
    assert Provider(1).answer(request).texts == Provider(1).answer(streamed).texts


def test_choices_differ_from_one_another() -> None:
    answer = Provider(1).answer(body(ROWS[0]["question"], n=8))
    assert len(answer.texts) == 8
    assert len(set(answer.texts)) > 5


def test_ids_are_unique_across_providers_of_one_seed() -> None:
    providers = (Provider(1), Provider(1))
    ids = [provider.answer(body(ROWS[0]["question"])).id for provider in providers for _ in range(50)]
    assert len(set(ids)) == 100
    assert all(id_.startswith("chatcmpl-sim-") for id_ in ids)


def test_a_token_limit_cuts_the_answer() -> None:
    def cut(limit: int) -> Completion:
        return Provider(1).answer(body(ROWS[0]["question"], max_tokens=limit))

    assert (cut(5).completion_tokens, cut(5).finish_reasons) == (5, ("length",))
    assert cut(5000).finish_reasons == ("stop",)


@pytest.mark.parametrize(
    ("raw", "status", "param"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"\xff\xfe", 400, None),
        (b"[" * 100_000, 400, None),
        (b'{"a": ' + b"9" * 5000 + b"}", 400, None),
        (b"[]", 400, None),
        (b"{}", 400, "model"),
        (b'{"model": 3, "messages": []}', 400, "model"),
        (b'{"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}]}', 404, "model"),
        (b'{"model": "sim-policy"}', 400, "messages"),
        (b'{"model": "sim-policy", "messages": {}}', 400, "messages"),
        (b'{"model": "sim-policy", "messages": []}', 400, "messages"),
        (b'{"model": "sim-policy", "messages": ["x"]}', 400, "messages[0]"),
        (b'{"model": "sim-policy", "messages": [{"content": "x"}]}', 400, "messages[0].role"),
        (b'{"model": "sim-policy", "messages": [{"role": "user", "content": 3}]}', 400, "messages[0].content"),
        (b'{"model": "sim-policy", "messages": [{"role": "user", "content": [3]}]}', 400, "messages[0].content[0]"),
    ],
)
def test_a_bad_body_is_refused_by_what_is_wrong(raw: bytes, status: int, param: str | None) -> None:
    with pytest.raises(Refused) as refused:
        Provider(1).answer(raw)
    assert (refused.value.status, refused.value.param) == (status, param)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 0), ("n", "2"), ("n", True), ("n", 10**6), ("stream", 1), ("temperature", "hot"), ("temperature", 3),
        ("temperature", float("nan")), ("seed", 1.5), ("max_tokens", 0), ("stream_options", []), ("stream_options", {}),
    ],
)  # fmt: skip
def test_a_member_of_the_wrong_type_is_named(name: str, value: object) -> None:
    with pytest.raises(Refused) as refused:
        Provider(1).answer(body("x", **{name: value}))
    assert refused.value.param == name


def test_a_lone_surrogate_is_read_like_any_other_letter() -> None:
    request = rb'{"model": "sim-policy", "messages": [{"role": "user", "content": "\ud800 hello"}]}'
    assert Provider(1).answer(request).finish_reasons == ("stop",)
