"""Tasks of reasoning-gym, made and judged in processes of their own; the package itself where it is installed."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.scripted import JSON, Reply, serving
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import result, run, version
from tests.tfgrpo.test_trainer import optimizer
from tfgrpo import blocking, gym
from tfgrpo.datasets import Dataset
from tfgrpo.errors import DatasetError, GraderError, UsageError
from tfgrpo.graders import by_name
from tfgrpo.graders.verdict import Grade, Grader
from tfgrpo.gym import Family
from tfgrpo.own_checkers import Own
from tfgrpo.sources import load
from tfgrpo.types import Message, Rollout, Task

STAND_IN = Path(__file__).parent / "stand_in"
INSTALLED = importlib.util.find_spec("reasoning_gym") is not None


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(STAND_IN)


def loaded(family: str, n: int = 3, seed: int = 0) -> Dataset:
    return load(f"reasoning-gym:{family}?n={n}&seed={seed}", need_reference=True)


def graded(task: Task, answers: Sequence[str], other: Grader | None = None) -> list[Grade]:
    async def work() -> list[Grade]:
        own = Own(other)
        try:
            return [await own.grade(task, Rollout("t", (Message("assistant", answer),))) for answer in answers]
        finally:
            await own.close()

    return blocking.run(work)


def numbers(family: str, seed: int) -> set[int]:
    return {int(task.reference or "") for task in loaded(family, 3, seed).tasks}


@pytest.mark.usefixtures("package")
def test_the_tasks_of_a_family_are_the_same_each_time_and_say_how_to_answer() -> None:
    first, again = loaded("sums"), loaded("sums")
    assert (first, len(first.tasks), first.report()) == (again, 3, None)
    assert [message.role for message in first.tasks[0].messages] == ["system", "user"]
    assert (first.tasks[2].question, first.tasks[2].reference) == ("2 + 1?", "3")


@pytest.mark.usefixtures("package")
def test_no_two_seeds_share_a_task_though_the_families_count_on_from_their_seed() -> None:
    assert not numbers("sums", 1) & numbers("sums", 2)


@pytest.mark.usefixtures("package")
def test_answers_are_judged_by_the_familys_own_checker_with_what_json_cannot_carry() -> None:
    task = loaded("sums").tasks[1]
    said = ["Well, <answer>7</answer>, no: <answer> 2 </answer>", "Answer: 2", "9", "two"]
    assert [grade.reward for grade in graded(task, said)] == [1.0, 1.0, 0.1, 0.0]


@pytest.mark.usefixtures("package")
def test_a_task_with_its_own_checker_is_judged_by_it_beside_a_grader_for_all_others() -> None:
    own, other = loaded("sums").tasks[1], Task("k", (Message("user", "q"),), "yes")
    assert graded(own, ["9"], by_name("exact")) == [Grade(0.1)]
    assert graded(other, ["yes"], by_name("exact")) == [Grade(1.0)]


def test_a_task_without_a_checker_needs_a_grader() -> None:
    with pytest.raises(UsageError, match="name a grader too"):
        graded(Task("k", (Message("user", "q"),), "yes"), ["yes"])


@pytest.mark.usefixtures("package")
def test_a_family_that_takes_none_of_its_right_answers_for_right_is_refused() -> None:
    with pytest.raises(DatasetError, match="takes none of its own right answers for right"):
        loaded("wrong")


@pytest.mark.usefixtures("package")
def test_tasks_whose_right_answer_is_taken_for_wrong_are_left_out_and_counted() -> None:
    found = loaded("odd", 5)
    assert [task.reference for task in found.tasks] == ["1", "3", "5"]
    assert "2 tasks are left out, whose right answer" in (found.report() or "")


@pytest.mark.usefixtures("package")
def test_a_family_that_names_no_right_answers_says_so_and_judges_all_the_same() -> None:
    found = loaded("open")
    assert "names no right answers" in (found.report() or "")
    assert graded(found.tasks[0], ["1"]) == [Grade(1.0)]


@pytest.mark.usefixtures("package")
def test_a_task_that_a_family_makes_again_is_taken_once() -> None:
    found = loaded("few", 5)
    assert (len(found.tasks), found.repeated) == (2, 3)


@pytest.mark.usefixtures("package")
def test_a_family_that_hangs_is_given_up() -> None:
    with pytest.raises(DatasetError, match=r"endless cannot make its tasks: it took longer than 0\.5 s"):
        gym.made(Family("endless", 2, 0), seconds=0.5)


@pytest.mark.usefixtures("package")
def test_a_family_that_draws_from_what_all_share_makes_the_same_task_again() -> None:
    assert graded(loaded("shared").tasks[2], ["3"]) == [Grade(1.0)]


@pytest.mark.usefixtures("package")
def test_another_task_than_the_one_that_was_answered_is_never_judged() -> None:
    with pytest.raises(GraderError, match="makes another task"):
        graded(loaded("restless").tasks[0], ["1"])


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("reasoning-gym:sumz", "there is no family 'sumz'; did you mean sums"),
        ("reasoning-gym:qqqq", "there are endless, few, odd"),
        ("reasoning-gym:composite", "there is no family"),
        ("reasoning-gym:", "must read reasoning-gym:FAMILY"),
        ("reasoning-gym:sums?m=1", "must read reasoning-gym:FAMILY"),
        ("reasoning-gym:sums?n=0", "n must be a whole number from 1 to 100000, not '0'"),
        ("reasoning-gym:sums?n=", "n must be a whole number"),
        ("reasoning-gym:sums?seed=-1", "seed must be a whole number from 0"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_what_to_do(source: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        load(source, need_reference=False)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(INSTALLED, reason="the package is installed")
def test_without_the_package_it_is_said_how_to_have_it() -> None:
    with pytest.raises(UsageError, match=r"pip install 'tfgrpo-proxy\[reasoning-gym\]'"):
        loaded("sums")


def answering(request: JSON) -> Reply:
    """Right where its prompt holds a lesson."""
    asked = request["messages"]
    if request["model"] != "policy":
        return optimizer(request)
    right = int(asked[-1]["content"].split()[0]) + 1
    return f"<answer>{right if 'Say yes.' in asked[0]['content'] else 0}</answer>"


async def commanded(home: Path, *arguments: str) -> Any:
    async with serving(answering) as endpoint:
        return await result(home, *arguments, endpoint=endpoint)


async def test_a_family_is_trained_on_estimated_and_evaluated_with_no_grader_named(home: Path) -> None:
    shutil.copytree(STAND_IN / "reasoning_gym", home / "reasoning_gym")
    version(home, "Say yes.")
    asked = ("--data", "reasoning-gym:sums?n=8&seed=2")
    found = await commanded(home, "evaluate", "--set", "s", "--k", "2", *asked)
    assert (found["verdict"], found["mean"], found["mean_against"]) == ("helps", 1.0, pytest.approx(0.1))
    trained = await commanded(home, "train", "--set", "t", "--from", "dataset", *asked)
    assert trained["steps"][0]["reward"] == pytest.approx(0.1)
    assert json.dumps(await commanded(home, "estimate", "--set", "t", "--from", "dataset", *asked))


async def test_a_family_that_is_not_there_ends_a_command_with_one_line(home: Path) -> None:
    shutil.copytree(STAND_IN / "reasoning_gym", home / "reasoning_gym")
    async with serving(answering) as endpoint:
        train = ("train", "--set", "t", "--from", "dataset", "--data", "reasoning-gym:sumz")
        code, _, err = await run(home, *train, endpoint=endpoint)
    assert (code, err.count("\n"), "did you mean sums" in err) == (2, 1, True)


@pytest.mark.skipif(not INSTALLED, reason="pip install 'tfgrpo-proxy[reasoning-gym]'")
@pytest.mark.parametrize("family", ["basic_arithmetic", "gsm_symbolic", "word_ladder"])
def test_the_package_itself_takes_its_right_answers_for_right(family: str) -> None:
    for task in loaded(family, 3, 5).tasks:
        assert graded(task, [f"<answer>{task.reference}</answer>"]) == [Grade(1.0)]
