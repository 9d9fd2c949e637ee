from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.tfgrpo.graders import sample
from tfgrpo.configuration import GraderSettings
from tfgrpo.errors import GraderError, UsageError
from tfgrpo.graders import Grade, by_name, configured
from tfgrpo.graders.python import PythonGrader
from tfgrpo.tasks import gather
from tfgrpo.types import Message, Rollout, Task

SECONDS = 30.0
HERE = "python:tests.tfgrpo.graders.sample"


async def graded(name: str, answer: str, reference: str | None, **arguments: Any) -> Grade:
    task = Task("k", (Message("user", "How far?"),), reference)
    grader = configured(GraderSettings.model_validate({"name": name, **arguments}), seconds=SECONDS)
    try:
        return await grader.grade(task, Rollout("t", (Message("assistant", answer),)))
    finally:
        await grader.close()


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Paris", "paris"),
        ("Thinking.\nAnswer: Paris.", "Paris"),
        ("**Answer:** Paris", "Paris"),
        ("**Final answer**: Paris", "Paris"),
        ("The answer is Paris.", "Paris"),
        ("Answer: London\nNo.\nAnswer: Paris", "Paris"),
        (r"So \boxed{\frac{1}{2}} it is.", r"\frac{1}{2}"),
        ("Steps\n#### 18", "18"),
        ("Answer: \u22125", "-5"),
        ("  Two   words ", "two words"),
    ],
)
async def test_an_exact_answer_is_right(answer: str, reference: str) -> None:
    assert (await graded("exact", answer, reference)).reward == 1.0


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("Answer: Paris\nAnswer: London", "Paris"), ("Paris or London", "Paris"), ("", "Paris"), ("Answer: 18.5", "18")],
)
async def test_an_answer_that_only_holds_the_reference_is_wrong(answer: str, reference: str) -> None:
    assert (await graded("exact", answer, reference)).reward == 0.0


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("It is $1,234.50.", "1234.5"),
        ("Answer: 18 eggs", "18"),
        ("about 3, no: 1/2", "0.5"),
        ("-7", "\u22127"),
        ("18.0", "18"),
    ],
)
async def test_the_last_number_counts(answer: str, reference: str) -> None:
    assert (await graded("number", answer, reference)).reward == 1.0


@pytest.mark.parametrize("answer", ["19", "none", "Answer: 17, not 18 but 17", "1/0"])
async def test_another_number_is_wrong(answer: str) -> None:
    assert (await graded("number", answer, "18")).reward == 0.0


async def test_a_reference_without_a_number_is_no_use_to_number() -> None:
    with pytest.raises(GraderError, match="holds no number"):
        await graded("number", "18", "eighteen")


async def test_a_function_is_given_what_it_names_only() -> None:
    assert (await graded(f"{HERE}:half", "x", None), await graded(f"{HERE}:strict", "x", "x")) == (
        Grade(0.5),
        Grade(1.0),
    )


async def test_a_function_may_return_a_critique() -> None:
    assert await graded(f"{HERE}:told", "a", "r") == Grade(1.0, "a r k t")


@pytest.mark.parametrize(
    "name",
    [
        "fuzzy",
        "python:",
        "python:tests",
        "python:no.such:thing",
        f"{HERE}:absent",
        f"{HERE}:strange",
        f"{HERE}:UNCALLABLE",
    ],
)
def test_a_grader_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        by_name(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("too_much", "returned 8.0"),
        ("failing", "ZeroDivisionError"),
        ("nothing", "returned None"),
        ("not_a_number", "returned nan"),
        ("leaving", "SystemExit"),
    ],
)
async def test_a_function_that_gives_no_reward_has_failed(name: str, said: str) -> None:
    with pytest.raises(GraderError, match=said):
        await graded(f"{HERE}:{name}", "x", None)


@pytest.mark.parametrize("name", ["later", "handing_on"])
async def test_a_function_may_wait_for_something(name: str) -> None:
    assert await graded(f"{HERE}:{name}", "xx", None) == Grade(0.5)


async def test_a_function_that_never_returns_is_given_up() -> None:
    grader = PythonGrader.of("waiting", sample.waiting, seconds=0.05)
    with pytest.raises(GraderError, match="longer than"):
        await grader.grade(Task("k", ()), Rollout("t", ()))


async def test_a_function_is_called_for_several_rollouts_at_once() -> None:
    both = threading.Barrier(2, timeout=30)
    grader = PythonGrader.of("both", lambda answer: both.wait() >= 0 and bool(answer))
    task, rollout = Task("k", ()), Rollout("t", (Message("assistant", "x"),))
    assert await gather(grader.grade(task, rollout) for _ in range(2)) == [Grade(1.0)] * 2
