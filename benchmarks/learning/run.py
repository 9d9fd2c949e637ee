"""One seed of one setting: every learner in turn, and what its library is worth on fresh tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from benchmarks.learning import learners
from benchmarks.learning.learners import Outcome
from benchmarks.learning.models import SimulatedRunner, provider_of, tasks_of, worth
from benchmarks.learning.settings import Setting, clean
from tfgrpo.types import Library, Task

FRESH_TASKS, FRESH_SAMPLES = 200, 8
"""What a library is worth is measured on so many tasks of no split of the run, so many times each."""
PATH_TASKS: Final = 50
"""The libraries on the way are measured once on so many of them: their mean over many seeds is what is read."""

Row: TypeAlias = dict[str, object]


def _runner(setting: Setting, seed: int) -> SimulatedRunner:
    return SimulatedRunner(
        provider_of(setting, seed), lambda task, luck, reward: setting.labels(seed, task.question, luck, reward)
    )


async def run(setting: Setting, seed: int) -> Row:
    """Return what each learner's library is worth, its path, calls and verdict."""
    provider = provider_of(setting, seed)
    measuring = SimulatedRunner(provider, lambda task, luck, reward: clean(seed, task.question, luck, reward))
    fresh = tasks_of(provider, FRESH_TASKS, "test")
    learn: dict[str, Callable[[SimulatedRunner], Awaitable[Outcome]]] = {
        "guessed": learners.guessed,
        **{f"paper {size}": _paper(size) for size in learners.PAPER_BATCHES},
        "ours": learners.ours,
    }
    outcomes = {"none": Outcome(Library()), "oracle": learners.oracle(provider.world)}
    for name, learner in learn.items():
        outcomes[name] = await learner(_runner(setting, seed))
    # Equal libraries are worth the same: a run that deploys nothing is no better or worse than one that never was.
    rewards: dict[tuple[str, ...], float] = {}
    row: Row = {"setting": setting.name, "seed": seed}
    for name, outcome in outcomes.items():
        texts = tuple(entry.text for entry in outcome.library.experiences)
        if texts not in rewards:
            rewards[texts] = await worth(measuring, fresh, outcome.library, samples=FRESH_SAMPLES)
        row[name] = {"reward": rewards[texts], **await _told(measuring, fresh, outcome)}
    return row


def _paper(size: int) -> Callable[[SimulatedRunner], Awaitable[Outcome]]:
    return lambda runner: learners.paper(runner, size)


async def _told(runner: SimulatedRunner, fresh: list[Task], outcome: Outcome) -> Row:
    path = [(calls, await worth(runner, fresh[:PATH_TASKS], library, samples=1)) for calls, library in outcome.path]
    learned = outcome.library if outcome.learned is None else outcome.learned
    return {
        "calls": outcome.calls,
        "verdict": outcome.verdict,
        "entries": len(learned),
        "path": path,
    }
