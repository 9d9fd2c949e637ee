from __future__ import annotations

import pytest

from tfgrpo.errors import UsageError
from tfgrpo.graders import Grade, by_name
from tfgrpo.types import Message, Rollout, Task

HERE = "python:tests.tfgrpo.graders.sample"


def graded(name: str, answer: str, reference: str | None) -> Grade:
    task = Task("k", (Message("user", "How far?"),), reference)
    return by_name(name).grade(task, Rollout("t", (Message("assistant", answer),)))


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
def test_an_exact_answer_is_right(answer: str, reference: str) -> None:
    assert graded("exact", answer, reference).reward == 1.0


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("Answer: Paris\nAnswer: London", "Paris"), ("Paris or London", "Paris"), ("", "Paris"), ("Answer: 18.5", "18")],
)
def test_an_answer_that_only_holds_the_reference_is_wrong(answer: str, reference: str) -> None:
    assert graded("exact", answer, reference).reward == 0.0


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
def test_the_last_number_counts(answer: str, reference: str) -> None:
    assert graded("number", answer, reference).reward == 1.0


@pytest.mark.parametrize("answer", ["19", "none", "Answer: 17, not 18 but 17", "1/0"])
def test_another_number_is_wrong(answer: str) -> None:
    assert graded("number", answer, "18").reward == 0.0


def test_a_reference_without_a_number_is_no_use_to_number() -> None:
    with pytest.raises(UsageError, match="holds no number"):
        graded("number", "18", "eighteen")


@pytest.mark.parametrize(("answer", "reward"), [("order AB-12", 1.0), ("order 12", 0.0)])
def test_a_pattern_is_searched_for(answer: str, reward: float) -> None:
    assert graded("regex", answer, r"\b[A-Z]{2}-\d+").reward == reward


def test_a_broken_pattern_is_refused() -> None:
    with pytest.raises(UsageError, match="regular expression"):
        graded("regex", "x", "(")


def test_a_function_is_given_what_it_names_only() -> None:
    assert (graded(f"{HERE}:half", "x", None), graded(f"{HERE}:strict", "x", "x")) == (Grade(0.5), Grade(1.0))


def test_a_function_may_return_a_critique() -> None:
    assert graded(f"{HERE}:told", "a", "r") == Grade(1.0, "a r k t")


@pytest.mark.parametrize(
    "name",
    ["fuzzy", "python:", "python:tests", "python:no.such:thing", f"{HERE}:absent", f"{HERE}:strange", f"{HERE}:later"],
)
def test_a_grader_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        by_name(name)


@pytest.mark.parametrize("name", ["too_much", "failing"])
def test_a_function_that_gives_no_reward_is_refused_with_its_name(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        graded(f"{HERE}:{name}", "x", None)
