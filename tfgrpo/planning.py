"""How many tasks and samples a wanted effect needs, told before they are paid for. Pure: numbers in, numbers out.

The difference that one task shows varies by between + 2 x within / k: `between` is how much the true effect varies
from task to task, `within` how much one sample of a task varies on either side, k the samples. So more samples take
away only the second part. Both are assumed, or taken from an earlier evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean, variance
from typing import Any, Final, TypeAlias

from tfgrpo.significance import fewest, quantiles

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of the true effect from task to task, and of one sample's reward. `source` says whence."""

    between: float
    within: float
    source: str

    def of_difference(self, samples: int) -> float:
        """Return the variance of the difference that one task shows with so many samples on each side."""
        return self.between + 2 * self.within / samples


ASSUMED: Final = Variance(
    0.04, 1 / 6, "assumed: rewards of 0 or 1, tasks of every difficulty alike, effects that vary by 0.2 between tasks"
)
"""A sample of a task that is solved with chance p varies by p(1-p), which is 1/6 on average over p in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an effect needs to be shown with 80 percent power at `level`.

    `tasks` are needed with `samples` each. `samples_needed` are needed with the `available` tasks; None where no number
    is enough, because the effect varies too much from task to task.
    """

    effect: float
    level: float
    samples: int
    tasks: int
    available: int
    samples_needed: int | None
    variance: Variance

    def as_json(self) -> JSON:
        """Return the plan as the command line prints it."""
        return {
            "effect": self.effect,
            "level": self.level,
            "k": self.samples,
            "tasks_needed": self.tasks,
            "tasks": self.available,
            "k_needed": self.samples_needed,
            "rollouts": 2 * self.available * self.samples,
            "fewest_tasks": fewest(self.level),
            "variance": {
                "between": self.variance.between,
                "within": self.variance.within,
                "source": self.variance.source,
            },
        }

    def __str__(self) -> str:
        few = fewest(self.level)
        if self.available < few:
            return f"{self.available} tasks can show nothing at level {self.level:.3g}, whatever the effect: give {few}"
        samples = "no k is enough" if self.samples_needed is None else f"it needs k {self.samples_needed}"
        return (
            f"an effect of {self.effect:g} needs {self.tasks} tasks at k {self.samples}; {self.available} tasks are "
            f"here, with which {samples} (80% power at level {self.level:.3g}; {self.variance.source})"
        )


def plan(effect: float, *, samples: int, available: int, level: float, variance: Variance = ASSUMED) -> Plan:
    """Return what an effect above 0 needs, by the normal approximation to the test."""
    precision = (effect / quantiles(level)) ** 2
    left = available * precision - variance.between
    return Plan(
        effect=effect,
        level=level,
        samples=samples,
        tasks=max(fewest(level), ceil(variance.of_difference(samples) / precision)),
        available=available,
        samples_needed=max(1, ceil(2 * variance.within / left)) if left > 0 else None,
        variance=variance,
    )


def observed(
    ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], *, source: str = "this evaluation"
) -> Variance | None:
    """Return how much rewards varied: a sequence of samples for each task on each side; None where that is unknown.

    `between` is what the variance of differences has beyond what samples explain, so that it is not counted twice.
    """
    samples = len(ours[0])
    if samples < 2 or len(ours) < 2:  # noqa: PLR2004 - one value has no variance
        return None
    within = fmean(variance(rewards) for rewards in (*ours, *theirs))
    differences = [fmean(a) - fmean(b) for a, b in zip(ours, theirs, strict=True)]
    return Variance(max(0.0, variance(differences) - 2 * within / samples), within, source)
