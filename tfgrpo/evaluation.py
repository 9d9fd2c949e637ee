"""The held-out comparison of two libraries: fresh rollouts on both sides, paired by task and sample.

It decides nothing about sets or deployments; whoever asks for the comparison acts on the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from tfgrpo import significance
from tfgrpo.rollouts import Prior, Runner, Sampling
from tfgrpo.types import Rollout, Task

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A comparison with its means. `failed` counts rollouts without an answer, which earn 0 like any wrong one."""

    comparison: significance.Comparison
    mean: float
    mean_against: float
    tasks: int
    samples: int
    failed: int

    def as_json(self) -> JSON:
        """Return the comparison as the command line prints it."""
        return {
            "verdict": self.comparison.verdict,
            "difference": self.comparison.difference,
            "interval": list(self.comparison.interval),
            "smallest_detectable": self.comparison.smallest_detectable,
            "mean": self.mean,
            "mean_against": self.mean_against,
            "n": self.tasks,
            "k": self.samples,
            "failed": self.failed,
        }


async def evaluate(
    runner: Runner, tasks: Sequence[Task], *, tested: Prior, against: Prior, samples: int, sampling: Sampling
) -> Evaluation:
    """Compare what the libraries `tested` and `against` do to the policy model on `tasks`.

    Each task is run `samples` times under each; sample i of both sides carries the same seed.
    """
    ours = await runner.run(tasks, tested, samples=samples, sampling=sampling)
    theirs = await runner.run(tasks, against, samples=samples, sampling=sampling)
    means, others = [_mean(some) for some in ours], [_mean(some) for some in theirs]
    differences = [round(a - b, 12) for a, b in zip(means, others, strict=True)]
    return Evaluation(
        comparison=significance.compare(differences, samples=samples, seed=sampling.seed),
        mean=fmean(means),
        mean_against=fmean(others),
        tasks=len(tasks),
        samples=samples,
        failed=sum(one.error is not None for some in (*ours, *theirs) for one in some),
    )


def _mean(rollouts: Sequence[Rollout]) -> float:
    return fmean(rollout.reward or 0.0 for rollout in rollouts)
