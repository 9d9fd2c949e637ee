"""Graders in processes of their own: real processes, real patterns that never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tfgrpo.configuration import GraderSettings
from tfgrpo.errors import GraderError, UsageError
from tfgrpo.graders import Grade, configured
from tfgrpo.tasks import gather
from tfgrpo.types import Message, Rollout, Task

ENDLESS = "a" * 64 + "b"
PERSON = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}

Judged = Callable[[str, "str | None"], Awaitable[Grade]]


@asynccontextmanager
async def opened(name: str, *, seconds: float = 30.0, **arguments: Any) -> AsyncIterator[Judged]:
    grader = configured(GraderSettings.model_validate({"name": name, **arguments}), seconds=seconds)

    def judged(answer: str, reference: str | None) -> Awaitable[Grade]:
        task = Task("k", (Message("user", "How far?"),), reference)
        return grader.grade(task, Rollout("t", (Message("assistant", answer),)))

    try:
        yield judged
    finally:
        await grader.close()


async def test_a_pattern_is_searched_for() -> None:
    async with opened("regex") as judged:
        found = [await judged(answer, r"\b[A-Z]{2}-\d+") for answer in ("order AB-12", "order 12")]
    assert found == [Grade(1.0), Grade(0.0)]


async def test_a_broken_reference_pattern_fails_on_its_task_only() -> None:
    async with opened("regex") as judged:
        with pytest.raises(GraderError, match="no regular expression"):
            await judged("x", "(")
        assert await judged("x", "x") == Grade(1.0)


async def test_a_broken_pattern_in_the_configuration_is_of_no_use_to_anybody() -> None:
    async with opened("regex", pattern="(") as judged:
        with pytest.raises(UsageError, match="grader regex: the pattern"):
            await judged("x", None)


async def test_a_search_that_never_ends_is_killed_and_the_next_rollout_is_judged_anew() -> None:
    async with opened("regex", seconds=0.5) as judged:
        for _ in range(2):
            with pytest.raises(GraderError, match="longer than"):
                await judged(ENDLESS, "(a+)+$")
        assert await judged("x", "x") == Grade(1.0)


async def test_rollouts_that_wait_for_their_turn_are_not_charged_for_it() -> None:
    async with opened("regex", seconds=0.5) as judged:
        stuck = asyncio.ensure_future(judged(ENDLESS, "(a+)+$"))
        found = await gather(judged(answer, "x") for answer in "xy")
        assert (found, isinstance(await asyncio.wait_for(_outcome(stuck), 30), GraderError)) == (
            [Grade(1.0), Grade(0.0)],
            True,
        )


async def _outcome(work: Awaitable[Grade]) -> Grade | Exception:
    try:
        return await work
    except GraderError as error:
        return error


async def test_whoever_gives_up_leaves_no_answer_behind_for_the_next() -> None:
    async with opened("regex") as judged:
        assert await judged("x", "x") == Grade(1.0)
        given_up = asyncio.ensure_future(judged(ENDLESS, "(a+)+$"))
        await asyncio.sleep(0)
        given_up.cancel()
        assert await judged("y", "x") == Grade(0.0)


MATHEMATICS = [
    (r"\frac{1}{2}", r"So it is \boxed{0.5}.", r"\boxed{\frac{1}{3}}"),
    (r"$\frac{1}{2}$", "Answer: 1/2", "Answer: 2"),
    (r"\left( 3, \frac{\pi}{2} \right)", r"\boxed{(3, \pi/2)}", r"\boxed{(\pi/2, 3)}"),
    ("x^2+2x+1", "Answer: (x+1)^2", "Answer: $(x-1)^2$"),
    (r"\text{Evelyn}", r"\boxed{\text{Evelyn}}", r"\boxed{\text{Evan}}"),
    ("33", "m+n is 33, so\nAnswer: 30 + 3", "30 + 4"),
    ("18", "Steps.\n#### 18 eggs", "18, no: 19"),
    ("3", "It is 3.", "I cannot say."),
]


async def test_mathematics_is_compared_as_mathematics() -> None:
    async with opened("math") as judged:
        found = [[(await judged(answer, one[0])).reward for answer in one[1:]] for one in MATHEMATICS]
    assert found == [[1.0, 0.0]] * len(MATHEMATICS)


async def test_algebra_that_never_ends_is_killed() -> None:
    async with opened("math", seconds=1.0) as judged:
        with pytest.raises(GraderError, match="longer than 1 s"):
            await judged(r"\boxed{9^{9^{9^{9^{9}}}} + x}", r"\frac{1}{2}")


async def test_a_reference_without_mathematics_is_no_use_to_math() -> None:
    async with opened("math") as judged:
        with pytest.raises(GraderError, match="holds no mathematics"):
            await judged("5", "")


async def test_json_that_fits_is_right() -> None:
    async with opened("json_schema", schema=PERSON) as judged:
        answers = ('{"age": 3}', 'Here:\n```json\n{"age": 3}\n```\nDone.')
        assert [await judged(answer, None) for answer in answers] == [Grade(1.0)] * 2


UNFIT = {
    '{"age": "3"}': "$.age: '3' is not of type 'integer'",
    '{"age": -1}': "less than the minimum",
    "{}": "$: 'age' is a required property",
    "three": "the answer is not JSON",
    '{"age": 3,}': "the answer is not JSON",
    "[" * 100_000: "the answer is not JSON",
}


async def test_the_critique_says_what_does_not_fit() -> None:
    async with opened("json_schema", schema=PERSON) as judged:
        grades = [await judged(answer, None) for answer in UNFIT]
    assert [one.reward for one in grades] == [0.0] * len(UNFIT)
    assert not [said for said, one in zip(UNFIT.values(), grades, strict=True) if said not in (one.critique or "")]


async def test_a_schema_may_be_a_file_or_the_reference_of_a_task(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "array"}')
    async with opened("json_schema", schema=str(tmp_path / "s.json")) as fixed, opened("json_schema") as judged:
        found = [
            await fixed("[]", None),
            await judged("[]", '{"type": "array"}'),
            await judged("[]", '{"type": "null"}'),
        ]
    assert [one.reward for one in found] == [1.0, 1.0, 0.0]


async def test_a_schema_that_refers_elsewhere_fetches_nothing() -> None:
    async with opened("json_schema", schema={"$ref": "http://127.0.0.1:9/schema.json"}) as judged:
        with pytest.raises(GraderError, match="Unresolvable"):
            await judged("{}", None)


async def test_a_schema_that_is_none_is_of_no_use_to_anybody() -> None:
    async with opened("json_schema", schema={"type": "wizard"}) as judged:
        with pytest.raises(UsageError, match=r"the schema is none, at \$\.type"):
            await judged("{}", None)
