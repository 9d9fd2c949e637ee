from __future__ import annotations

import pytest

from tfgrpo.errors import GraderError
from tfgrpo.graders import Grade, Grader, by_name
from tfgrpo.graders.counting import PATIENCE, Counting
from tfgrpo.graders.python import PythonGrader
from tfgrpo.types import Message, Rollout, Task


def picky(answer: str) -> float:
    return 1 / (len(answer) - 1)


async def graded(grader: Grader, *answers: str) -> list[Grade]:
    task = Task("k", (Message("user", "How\nfar?"),), "x")
    return [await grader.grade(task, Rollout("t", (Message("assistant", answer),))) for answer in answers]


async def test_a_rollout_that_the_grader_fails_on_stays_unjudged() -> None:
    counting = Counting(PythonGrader.of("picky", picky))
    assert await graded(counting, "ab", "a") == [Grade(1.0), Grade(None)]


async def test_failures_are_reported_with_grader_and_task() -> None:
    counting = Counting(PythonGrader.of("picky", picky))
    await graded(counting, "ab", "a", "a")
    assert counting.report() == (
        "2 of 3 rollouts could not be judged and are left out; "
        "the grader picky failed on 'How far?': ZeroDivisionError: division by zero"
    )


async def test_a_grader_that_judges_everything_has_nothing_to_report() -> None:
    counting = Counting(by_name("exact"))
    await graded(counting, "x", "y")
    assert counting.report() is None


async def test_a_grader_that_fails_on_everything_is_broken() -> None:
    counting = Counting(PythonGrader.of("picky", picky))
    await graded(counting, "a")
    with pytest.raises(GraderError, match=r"picky failed on 'How far.': .*none of 1 rollouts"):
        counting.check()


async def test_a_broken_grader_does_not_let_a_long_run_go_to_its_end() -> None:
    with pytest.raises(GraderError, match=f"none of {PATIENCE} rollouts"):
        await graded(Counting(PythonGrader.of("picky", picky)), *["a"] * PATIENCE)


async def test_a_grader_that_once_judged_may_fail_as_often_as_it_likes() -> None:
    grades = await graded(Counting(PythonGrader.of("picky", picky)), "ab", *["a"] * PATIENCE)
    assert len(grades) == PATIENCE + 1
