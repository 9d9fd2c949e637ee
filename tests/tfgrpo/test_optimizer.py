from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tfgrpo.scripted import JSON, Reply, refusal, serving
from tfgrpo.llm import Llm
from tfgrpo.memo import Memo
from tfgrpo.optimizer import CUT, UNREADABLE, Answer, Lessons, Optimizer, read_lessons, read_operations
from tfgrpo.types import Operation
from tfgrpo.usage import Ledger

ADD = '{"operations": [{"why": "w", "operation": "add", "ids": [], "text": "Check units."}]}'
CHECK = Operation("add", (), "Check units.", "w")
SCHEMA = {
    "name": "operations",
    "strict": True,
    "schema": {"properties": {"operations": {"type": "array", "items": {}}}},
}
FORM = '{"operations": [{"why": "...", "operation": "add", "ids": ["..."], "text": "..."}]}'


def operations(text: str) -> tuple[Operation, ...]:
    answer = read_operations(text)
    assert answer is not None
    return answer.value


@given(st.text())
def test_reading_operations_never_raises(text: str) -> None:
    read_operations(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(st.sampled_from(["operations", "operation", "ids", "text", "why", "lessons"]), x)
        ),
    )
)
def test_reading_any_json_never_raises(value: object) -> None:
    text = repr(value)
    read_operations(text)
    read_lessons(text)


@pytest.mark.parametrize(
    "text",
    [
        ADD,
        f"```json\n{ADD}\n```",
        f"{ADD}\n\nThe form was:\n{FORM}",
        f"{FORM}\n\n{ADD}",
        f'{ADD}\n{{"type": "object", "properties": {{"operations": {{"type": "array"}}}}}}',
        '[{"why": "w", "operation": "ADD", "ids": null, "text": "Check units."}]',
        '{"why": "w", "operation": "add", "text": "Check units."}',
        f"[e3] is not needed. {ADD}",
        f"<think>Perhaps {FORM}, or {ADD.replace('Check', 'Forget')}</think>{ADD}",
        f"分析如下：好的尝试检查了单位。\n{ADD}\n希望对您有帮助。",
        f"{ADD}\n{json.dumps(SCHEMA)}",
        ADD.replace("]}", "]},")[:-1] + "\n",
    ],
)
def test_one_operation_is_found_however_it_is_written(text: str) -> None:
    assert operations(text) == (CHECK,)


def test_the_last_of_two_answers_counts() -> None:
    assert operations(ADD.replace("units", "draft") + ADD) == (CHECK,)


def test_an_operation_that_stands_twice_counts_once() -> None:
    row = '{"why": "w", "operation": "add", "ids": [], "text": "Check units."}'
    assert operations(f'{{"operations": [{row}, {row}]}}') == (CHECK,)


@pytest.mark.parametrize("ids", ['["[e3]"]', '"e3"', '["3"]', "[3]", '["id: e3"]', '["e3", "e3"]'])
def test_ids_are_read_as_they_are_meant(ids: str) -> None:
    assert operations(f'{{"operations": [{{"operation": "delete", "ids": {ids}, "text": null}}]}}')[0].ids == ("e3",)


def test_what_is_no_operation_is_a_fault_and_the_others_stand() -> None:
    text = '{"operations": [{"operation": "invent", "text": "x"}, {"operation": "delete", "ids": ["e1"]}]}'
    answer = read_operations(text)
    assert answer is not None
    assert ([one.operation for one in answer.value], len(answer.faults)) == (["delete"], 1)


def test_no_operation_is_an_answer() -> None:
    assert read_operations('{"operations": []}') == Answer(())


def test_prose_is_no_answer() -> None:
    assert read_operations("I would add nothing.") is None


def test_latex_in_a_lesson_survives() -> None:
    answer = read_lessons(r'{"analysis": "a", "lessons": ["Write \frac{a}{b}, not a/b."]}')
    assert answer == Answer(Lessons("a", (r"Write \frac{a}{b}, not a/b.",)))


def test_an_answer_that_is_cut_says_so() -> None:
    answer = read_lessons('{"analysis": "a", "lessons": ["whole", "ha')
    assert answer == Answer(Lessons("a", ("whole",)), (CUT,))


async def asked(*replies: Reply, **settings: Any) -> tuple[Answer[tuple[Operation, ...]], list[JSON]]:
    left = list(replies)
    async with serving(lambda _: left.pop(0)) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        answer = await Optimizer(llm, "Be right.", seed=5).operations(
            "propose", ["<lessons>\n- x\n</lessons>"], **settings
        )
    return answer, endpoint.requests


async def test_a_call_keeps_to_the_frame() -> None:
    _, (request,) = await asked(ADD)
    assert request["messages"][0]["content"].splitlines()[0] == "Stage: propose"
    assert request["messages"][1]["content"] == "<objective>\nBe right.\n</objective>\n\n<lessons>\n- x\n</lessons>"


async def test_a_json_stage_asks_for_a_schema_and_carries_a_seed() -> None:
    _, (request,) = await asked(ADD)
    assert (request["response_format"]["type"], request["seed"]) == ("json_schema", 5)


async def test_an_unreadable_answer_is_repaired_by_showing_what_is_wrong() -> None:
    answer, requests = await asked("Hm.", ADD)
    assert answer == Answer((CHECK,))
    assert UNREADABLE in requests[1]["messages"][3]["content"]


async def test_an_answer_that_stays_unreadable_is_asked_for_afresh_with_another_seed() -> None:
    answer, requests = await asked("Hm.", "Hm.", ADD)
    assert (answer, requests[2]["seed"]) == (Answer((CHECK,)), 6)


async def test_an_answer_that_is_never_readable_is_a_fault() -> None:
    answer, requests = await asked("Hm.", "Hm.", "Hm.", "Hm.")
    assert (answer, len(requests)) == (Answer((), (UNREADABLE,)), 4)


async def test_a_repair_that_is_worse_does_not_replace_the_answer() -> None:
    half = ADD[:-2]
    answer, _ = await asked(half, "Sorry.")
    assert answer == Answer((CHECK,), (CUT,))


async def test_what_the_caller_checks_is_shown_in_the_repair() -> None:
    _, requests = await asked(ADD, ADD, check=lambda _: ["entry e9 is unknown"])
    assert "entry e9 is unknown" in requests[1]["messages"][3]["content"]


async def test_an_endpoint_without_schemas_is_asked_without() -> None:
    answer, requests = await asked(refusal(400, "json_schema is not supported"), ADD)
    assert (answer.value, "response_format" in requests[1]) == ((CHECK,), False)


@pytest.mark.parametrize(
    "text",
    [
        '{"lessons": [{"lesson": "Check units."}]}',
        '{"lessons": [{"text": "Check units.", "why": "it helps"}]}',
        '{"result": {"lessons": ["Check units."]}}',
        '[{"lessons": ["Check units."]}]',
        '{"Analysis": "a", "Lessons": ["Check units."]}',
        '{"lessons": "Check units."}',
    ],
)
def test_a_lesson_is_found_in_whatever_shape_it_comes(text: str) -> None:
    answer = read_lessons(text)
    assert answer is not None
    assert (answer.value.lessons, answer.faults) == (("Check units.",), ())


@pytest.mark.parametrize(
    "text",
    [f'{{"answer": {ADD}}}', ADD.replace("operations", "Operations"), f"[{ADD}]"],
)
def test_operations_are_found_one_level_down_and_in_any_case(text: str) -> None:
    assert operations(text) == (CHECK,)


async def test_answers_that_stay_unreadable_are_asked_for_anew_by_the_next_run(tmp_path: Path) -> None:
    memo = Memo(tmp_path / "memo")
    replies: list[Reply] = [*["no JSON"] * 4, '{"analysis": "a", "lessons": ["Check units."]}']
    async with serving(lambda _: replies.pop(0)) as endpoint:
        for _ in range(2):
            async with Llm(endpoint.model(), ledger=Ledger(), memo=memo) as llm:
                answer = await Optimizer(llm).lessons(["<task>\nx\n</task>"])
    memo.close()
    assert (answer.value.lessons, replies) == (("Check units.",), [])


async def test_of_more_lessons_than_asked_for_the_first_are_taken() -> None:
    said = json.dumps({"analysis": "a", "lessons": ["One.", "Two.", "Three."]})
    async with serving(lambda _: said) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        found = [await Optimizer(llm, most_lessons=most).lessons(["x"]) for most in (1, 2)]
    assert [one.value.lessons for one in found] == [("One.",), ("One.", "Two.")]


async def test_without_repair_an_answer_is_taken_as_far_as_it_can_be_read() -> None:
    async with serving(lambda _: ADD[:-2]) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        answer = await Optimizer(llm, repair=False).operations("propose", ["x"])
    assert (answer, len(endpoint.requests)) == (Answer((CHECK,), (CUT,)), 1)
