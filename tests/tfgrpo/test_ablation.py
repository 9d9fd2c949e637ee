from __future__ import annotations

import random

import pytest

from tests.tfgrpo.scripted import JSON, Reply, refusal, serving
from tfgrpo.ablation import Ablation, Observation, ablate, fit, halves, pruned
from tfgrpo.errors import ModelError, UsageError
from tfgrpo.graders import by_name
from tfgrpo.library import from_texts
from tfgrpo.llm import Llm
from tfgrpo.rollouts import ChatRunner, Prior, Sampling
from tfgrpo.types import Message, Task
from tfgrpo.usage import Ledger

TASKS = [Task(f"k{number}", (Message("user", f"task {number}"),), "yes") for number in range(16)]
LIBRARY = Prior("s", 1, from_texts(["HELP", "NOTHING", "HARM"]))


def simulated(effects: list[float], *, tasks: int, seed: int) -> list[list[Observation]]:
    rng = random.Random(seed)  # noqa: S311 - a fixed draw, no secret
    found = []
    for task in range(tasks):
        chance = rng.uniform(0.35, 0.65)
        found.append([(half, float(rng.random() < chance + worth(effects, half))) for half in chosen(task, seed)])
    return found


def chosen(task: int, seed: int) -> list[tuple[bool, ...]]:
    return halves(4, 8, seed=f"{seed}:{task}")


def worth(effects: list[float], half: tuple[bool, ...]) -> float:
    return sum(effect * (given - 0.5) for effect, given in zip(effects, half, strict=True))


def reply(request: JSON) -> Reply:
    """Right with HELP and without HARM; with both or neither as the task is even or odd."""
    block, task = request["messages"][0]["content"], request["messages"][-1]["content"]
    good = ("HELP" in block) - ("HARM" in block)
    return "Answer: yes" if good > 0 or (good == 0 and task[-1] in "02468") else "Answer: no"


async def measured(answer: object = reply, *, samples: int = 8) -> Ablation:
    assert callable(answer)
    async with serving(answer) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        runner = ChatRunner(llm, by_name("exact"), lambda _: None)
        return await ablate(runner, TASKS, LIBRARY, samples=samples, sampling=Sampling(0.3))


async def test_each_entry_is_measured_by_itself() -> None:
    found = await measured()
    assert [one.verdict for one in found.effects] == ["helps", "no effect shown", "hurts"]
    assert [one.effect for one in found.effects] == pytest.approx([0.5, 0.0, -0.5], abs=0.15)


async def test_only_what_is_shown_to_hurt_is_pruned() -> None:
    library = pruned(LIBRARY.library, await measured())
    assert ([one.id for one in library.experiences], library.next_id) == (["e1", "e2"], 4)


async def test_an_odd_number_of_samples_has_no_halves() -> None:
    with pytest.raises(UsageError, match="even number"):
        await measured(samples=3)


async def test_when_no_rollout_gave_an_answer_no_entry_is_judged() -> None:
    with pytest.raises(ModelError, match="none of 32 rollouts"):
        await measured(lambda _: refusal(400, "no"), samples=2)


def test_each_entry_is_in_half_of_a_tasks_samples() -> None:
    assert [sum(column) for column in zip(*halves(7, 8, seed="any"), strict=True)] == [4] * 7


def test_entries_that_cannot_be_told_apart_are_an_error() -> None:
    with pytest.raises(UsageError, match="too few rollouts"):
        fit([[((True, True), 1.0), ((False, False), 0.0)]] * 8)


def test_intervals_hold_the_truth_of_all_entries_together_about_as_often_as_they_say() -> None:
    effects, held = [0.2, -0.2, 0.0, 0.0], 0
    for seed in range(100):
        found = fit(simulated(effects, tasks=12, seed=seed), seed=seed)
        held += all(low <= effect <= high for effect, (_, (low, high)) in zip(effects, found, strict=True))
    # 95 of 100, with four standard errors of room.
    assert held >= 87
