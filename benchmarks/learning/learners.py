"""The learners: each gets a fresh provider and the same budget of policy calls, and ends in a library.

What counts as ours is what would be live after the run: what was learned where the gate says `helps`, else the parent,
which is the empty library.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from benchmarks.learning.models import SET, VERSION, SimulatedRunner, optimizer_of, tasks_of
from tfgrpo import library as libraries
from tfgrpo.assembly import limits, optimizer, practice
from tfgrpo.assembly import trainer as trainer_of
from tfgrpo.configuration import Training
from tfgrpo.evaluation import evaluate
from tfgrpo.prompts import section
from tfgrpo.recipe import RECIPES, Name
from tfgrpo.rollouts import Prior, Sampling
from tfgrpo.simulation.language import lesson
from tfgrpo.simulation.world import World
from tfgrpo.splits import split
from tfgrpo.trainer import Learned
from tfgrpo.types import Library, Operation, Task

TASKS: Final = 300
"""Tasks of the data set that every learner is given."""
TRAINING: Final = Training()
"""The defaults of the product. Ours is compared as it ships."""
BUDGET: Final = TASKS * TRAINING.group_size * TRAINING.epochs
"""Policy calls: what the paper's recipe takes for this data set. Training, validation and gate all count."""
PAPER_BATCHES: Final = (25, 50, 100)
GUESSES: Final = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a learner ends in. `path` holds the library after each step with the policy calls made so far.

    `verdict` is the gate's, None where there is no gate.
    """

    library: Library
    calls: int = 0
    verdict: str | None = None
    path: tuple[tuple[int, Library], ...] = ()
    learned: Library | None = None


class Quiet:
    """A listener that says nothing."""

    def begin(self, stage: str, total: int) -> None:
        """Say nothing."""

    def advance(self, stage: str) -> None:
        """Say nothing."""


async def guessed(runner: SimulatedRunner) -> Outcome:
    """Ask the optimizer for lessons with no rollout to study, and take them all."""
    tasks = tasks_of(runner.provider, GUESSES, "train")
    async with optimizer_of(runner.provider) as llm:
        asked = optimizer(llm, TRAINING, RECIPES["ours"], seed=0)
        answers = [await asked.lessons([section("task", task.question)]) for task in tasks]
    texts = [text for answer in answers for text in answer.value.lessons]
    edit = libraries.apply(
        Library(), [Operation("add", text=text) for text in texts], limits=limits(TRAINING, RECIPES["ours"])
    )
    return Outcome(edit.library)


async def paper(runner: SimulatedRunner, batch_size: int) -> Outcome:
    """Learn as the paper does, from all tasks."""
    tasks = tasks_of(runner.provider, TASKS, "train")
    learned = await _learned(runner, tasks, TRAINING.model_copy(update={"batch_size": batch_size}), "paper")
    return Outcome(learned.library, runner.made.total(), path=_path(learned))


async def ours(runner: SimulatedRunner, training: Training = TRAINING) -> Outcome:
    """Learn with the defaults, choose, and let the gate decide on tasks that were held out."""
    splits = split(
        tasks_of(runner.provider, TASKS, "train"),
        held_out=training.splits.held_out,
        validation=training.splits.validation,
    )
    learned = await _learned(runner, splits.train, training, "ours", validation=splits.validation)
    if not learned.library.experiences:
        return Outcome(learned.library, runner.made.total(), "no effect shown", _path(learned), learned.library)
    gate = await evaluate(
        runner,
        splits.held_out,
        tested=Prior(SET, VERSION, learned.library),
        against=Prior(SET, 0, Library()),
        samples=training.gate.samples,
        sampling=Sampling(training.evaluation_temperature, 0, "gate"),
    )
    verdict = gate.comparison.verdict
    live = learned.library if verdict == "helps" else Library()
    return Outcome(live, runner.made.total(), verdict, _path(learned), learned.library)


def oracle(world: World) -> Outcome:
    """Return the world's own rules, each said once, under the same limits."""
    rng = random.Random(world.seed)  # noqa: S311 - a simulation
    texts = [lesson(rule.feature, rule.polarity, rng) for rule in world.rules]
    edit = libraries.apply(
        Library(), [Operation("add", text=text) for text in texts], limits=limits(TRAINING, RECIPES["ours"])
    )
    return Outcome(edit.library)


async def _learned(
    runner: SimulatedRunner,
    tasks: tuple[Task, ...] | list[Task],
    training: Training,
    recipe: Name,
    *,
    validation: tuple[Task, ...] = (),
) -> Learned:
    switches = RECIPES[recipe]
    async with optimizer_of(runner.provider) as llm:
        trainer = trainer_of(training, switches, llm, Quiet(), seed=0)
        how = practice(training, switches, runner, set_name=SET, version=VERSION, seed=0, validation=validation)
        return await trainer.practise(tasks, Library(), how)


def _path(learned: Learned) -> tuple[tuple[int, Library], ...]:
    calls = accumulate(step.groups * TRAINING.group_size for step in learned.steps)
    return tuple(zip(calls, (step.after for step in learned.steps), strict=True))
