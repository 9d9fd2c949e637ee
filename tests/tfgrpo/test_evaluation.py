from __future__ import annotations

import pytest

from tests.tfgrpo.scripted import JSON, Reply, refusal, serving
from tfgrpo.errors import ModelError
from tfgrpo.evaluation import Evaluation, Guard, evaluate, key_of, split_of
from tfgrpo.graders import by_name
from tfgrpo.library import from_texts
from tfgrpo.llm import Llm
from tfgrpo.rollouts import ChatRunner, Prior, Sampling
from tfgrpo.types import Message, Task
from tfgrpo.usage import Ledger

TASKS = [Task(f"k{number}", (Message("user", f"task {number}"),), "yes") for number in range(10)]


LESSONS = Prior("s", 1, from_texts(["LESSONS"]))
NONE = Prior("s", 0, from_texts([]))


def helped(request: JSON) -> Reply:
    return "Answer: yes" if "LESSONS" in request["messages"][0]["content"] else "Answer: no"


GUARD = Guard("chat.jsonl", tuple(Task(f"g{n}", (Message("user", f"other {n}"),), "yes") for n in range(8)))


async def compared(
    reply: object = helped, *, tested: Prior = LESSONS, against: Prior = NONE, guards: tuple[Guard, ...] = ()
) -> Evaluation:
    assert callable(reply)
    async with serving(reply) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        runner = ChatRunner(llm, by_name("exact"), lambda _: None)
        return await evaluate(
            runner, TASKS, tested=tested, against=against, samples=3, sampling=Sampling(0.3), guards=guards
        )


async def test_a_library_that_turns_answers_right_helps() -> None:
    found = await compared()
    assert (found.comparison.verdict, found.comparison.difference, found.mean) == ("helps", 1.0, 1.0)


async def test_a_library_that_turns_answers_wrong_hurts() -> None:
    assert (await compared(tested=NONE, against=LESSONS)).comparison.verdict == "hurts"


async def test_a_library_against_itself_shows_no_effect() -> None:
    found = await compared(against=LESSONS)
    assert (found.comparison.verdict, found.comparison.difference) == ("no effect shown", 0.0)


async def test_rollouts_without_an_answer_are_counted() -> None:
    def reply(request: JSON) -> Reply:
        return refusal(400, "no") if request["messages"][-1]["content"] == "task 3" else helped(request)

    assert (await compared(reply)).failed == 6


async def test_when_no_rollout_gave_an_answer_there_is_an_error_and_no_verdict() -> None:
    with pytest.raises(ModelError, match=r"none of 60 rollouts gave an answer.*too long"):
        await compared(lambda _: refusal(400, "too long"))


async def test_a_harmed_guard_makes_a_library_that_helps_one_that_hurts() -> None:
    def reply(request: JSON) -> Reply:
        lessons, other = helped(request) == "Answer: yes", "other" in request["messages"][-1]["content"]
        return "Answer: yes" if lessons != other else "Answer: no"

    found = await compared(reply, guards=(GUARD,))
    assert (found.comparison.verdict, found.guards[0].verdict, found.verdict) == ("helps", "harmed", "hurts")


async def test_a_guard_that_is_not_worse_leaves_the_verdict() -> None:
    found = await compared(guards=(GUARD,))
    assert (found.guards[0].verdict, found.verdict) == ("unharmed", "helps")


async def test_a_guard_of_too_few_tasks_is_unclear_and_nothing_is_shown_to_help() -> None:
    found = await compared(guards=(Guard("few", GUARD.tasks[:3]),))
    assert (found.guards[0].verdict, found.verdict) == ("unclear", "no effect shown")


async def test_each_side_says_its_pass_at_k_and_its_tokens() -> None:
    found = await compared()
    assert (found.tested.passed, found.against.passed, found.tested.completion_tokens) == (1.0, 0.0, 150)


async def test_a_stricter_level_widens_the_interval_of_the_same_rollouts() -> None:
    def reply(request: JSON) -> Reply:
        return helped(request) if request["messages"][-1]["content"][-1] in "123456" else "Answer: no"

    found = await compared(reply)
    (low, high), (lower, higher) = found.comparison.interval, found.at(0.005).comparison.interval
    assert lower <= low <= high <= higher
    assert higher - lower > high - low


def test_the_name_of_a_split_does_not_depend_on_the_order_of_its_tasks() -> None:
    assert split_of(TASKS) == split_of(TASKS[::-1]) != split_of(TASKS[1:])


def test_another_runner_is_another_comparison() -> None:
    names = {
        key_of(TASKS, [LESSONS], model="m", samples=8, sampling=Sampling(0.3, 0), grader="exact", runner=runner)
        for runner in ("chat", "python:mine:run", "python:mine:other")
    }
    assert len(names) == 3


def test_another_seed_is_another_comparison() -> None:
    names = {
        key_of(TASKS, [LESSONS, NONE], model="m", samples=8, sampling=Sampling(0.3, seed), grader="exact")
        for seed in (0, 0, 1)
    }
    assert len(names) == 2


async def test_the_json_says_verdict_difference_interval_and_size() -> None:
    shown = (await compared()).as_json()
    assert {"verdict", "difference", "interval", "smallest_detectable", "mean", "mean_against", "n"} <= shown.keys()
