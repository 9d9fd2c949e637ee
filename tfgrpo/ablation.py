"""What each entry of a library is worth: random halves are left out, and rewards fitted as a sum of entries.

Every sample of a task runs under a random half of the library, its neighbour under the other half, so that each entry
is in exactly one of each pair. Rewards are fitted by ordinary least squares with an effect for each task: an entry's
effect is what it adds to the reward when it joins a random half of the others. What two entries do only together is
spread over both. Intervals come from the jackknife over tasks (Tukey 1958; in regressions MacKinnon and White 1985), by
sign flips as in `significance`, corrected by Bonferroni (Dunn 1961, "Multiple comparisons among means") for the number
of entries: the chance that any of them is wrong is meant to be at most `alpha`. It knows no store.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace as replaced

from tfgrpo import additive, significance
from tfgrpo.additive import Matrix
from tfgrpo.errors import GraderError, ModelError, UsageError
from tfgrpo.rollouts import Prior, Runner, Sampling
from tfgrpo.tasks import gather
from tfgrpo.types import Experience, Library, Rollout, Task

JSON: TypeAlias = dict[str, Any]
Half: TypeAlias = tuple[bool, ...]
"""Which entries of a library, in its order, a rollout was given."""
Worth: TypeAlias = Literal["helps", "hurts", "no effect shown"]
Observation: TypeAlias = tuple[Half, float]


@dataclass(frozen=True, slots=True)
class Effect:
    """What one entry is worth: the reward it adds, with an interval."""

    id: str
    text: str
    effect: float
    interval: tuple[float, float]

    @property
    def verdict(self) -> Worth:
        """`helps` or `hurts` when the interval leaves zero out."""
        return "helps" if self.interval[0] > 0 else "hurts" if self.interval[1] < 0 else "no effect shown"

    def as_json(self) -> JSON:
        """Return the effect as the command line prints it and the store keeps it."""
        return {
            "id": self.id,
            "text": self.text,
            "effect": self.effect,
            "interval": list(self.interval),
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class Ablation:
    """The effects of a library's entries, in its order. `mean` is the reward under random halves."""

    effects: tuple[Effect, ...]
    mean: float
    tasks: int
    samples: int
    failed: int
    alpha: float

    @property
    def hurting(self) -> tuple[str, ...]:
        """The ids of the entries that are shown to hurt."""
        return tuple(one.id for one in self.effects if one.verdict == "hurts")

    def as_json(self) -> JSON:
        """Return the ablation as the command line prints it."""
        return {
            "entries": [one.as_json() for one in self.effects],
            "mean": self.mean,
            "n": self.tasks,
            "k": self.samples,
            "failed": self.failed,
            "level": self.alpha,
        }


async def ablate(
    runner: Runner,
    tasks: Sequence[Task],
    prior: Prior,
    *,
    samples: int,
    sampling: Sampling,
    alpha: float = significance.ALPHA,
) -> Ablation:
    """Return what each entry of `prior` is worth on `tasks`, from `samples` (an even number) rollouts of each.

    Raises:
        UsageError: `samples` is odd, the library is empty, or there are too few rollouts to tell the entries apart.
        ModelError: no rollout gave an answer.
        GraderError: the grader failed on all of them.
    """
    entries = prior.library.experiences
    if samples % 2:
        raise UsageError(f"an ablation needs an even number of samples, not {samples}: halves come in pairs", field="k")
    if not entries:
        raise UsageError(f"{prior.set}@{prior.version} has no entries to leave out", field="set")
    design = [halves(len(entries), samples, seed=f"{sampling.seed}:{task.key}") for task in tasks]
    made = await gather(
        _one(runner, task, _under(prior, half), Sampling(sampling.temperature, _seed(sampling, number), sampling.stage))
        for task, chosen in zip(tasks, design, strict=True)
        for number, half in enumerate(chosen)
    )
    if all(rollout.error is not None for rollout in made):
        raise ModelError(f"none of {len(made)} rollouts gave an answer; the first error: {made[0].error}")
    # What the grader failed on is left out; each task is held against its own mean, so it may have fewer rollouts.
    observed = [
        [(half, one.reward) for half, one in zip(chosen, made[at * samples :], strict=False) if one.reward is not None]
        for at, chosen in enumerate(design)
    ]
    observed = [task for task in observed if task]
    if not observed:
        raise GraderError(f"the grader failed on all {len(made)} rollouts")
    found = fit(observed, alpha=alpha, seed=sampling.seed)
    return Ablation(
        effects=tuple(
            Effect(one.id, one.text, effect, interval) for one, (effect, interval) in zip(entries, found, strict=True)
        ),
        mean=fmean(reward for task in observed for _, reward in task),
        tasks=len(observed),
        samples=samples,
        failed=sum(rollout.error is not None for rollout in made),
        alpha=alpha,
    )


def pruned(library: Library, ablation: Ablation) -> Library:
    """Return `library` without the entries that were shown to hurt, and nothing else changed."""
    kept: tuple[Experience, ...] = tuple(one for one in library.experiences if one.id not in ablation.hurting)
    return replaced(library, experiences=kept)


def halves(entries: int, samples: int, *, seed: str) -> list[Half]:
    """Return a half for each sample: each entry by a fair coin, every second half the complement of the one before.

    Halves of one fixed size would not do: how many entries there are could then not be told from a task's effect.
    """
    rng = random.Random(seed)  # noqa: S311 - a design, no secret
    chosen: list[Half] = []
    for _ in range(samples // 2):
        half = tuple(rng.random() < 0.5 for _ in range(entries))  # noqa: PLR2004 - a fair coin
        chosen += [half, tuple(not given for given in half)]
    return chosen


def fit(
    observed: Sequence[Sequence[Observation]], *, alpha: float = significance.ALPHA, seed: int = 0
) -> list[tuple[float, tuple[float, float]]]:
    """Return effect and interval of each entry, from the halves and rewards of each task.

    Raises:
        UsageError: there are too few rollouts to tell the entries apart, even with one task left out.
    """
    parts = [_normal(task) for task in observed]
    width = len(parts[0][1])
    whole = _added(parts, width)
    estimate = _solved(*whole)
    without = [_solved(*_taken(whole, part)) for part in parts]
    n = len(parts)
    found = []
    for entry in range(width):
        pseudo = [n * estimate[entry] - (n - 1) * left[entry] for left in without]
        low, high = significance.sign_flip_interval(pseudo, alpha / width, seed=seed)
        # A level that no flip can reject leaves the whole range of rewards.
        found.append((estimate[entry], (low, high)))
    return found


def _under(prior: Prior, half: Half) -> Prior:
    kept = tuple(one for one, given in zip(prior.library.experiences, half, strict=True) if given)
    return Prior(prior.set, prior.version, replaced(prior.library, experiences=kept))


def _seed(sampling: Sampling, number: int) -> int:
    digest = hashlib.blake2b(f"ablate:{sampling.seed}:{number}".encode(), digest_size=4).digest()
    return int.from_bytes(digest) >> 1


async def _one(runner: Runner, task: Task, prior: Prior, sampling: Sampling) -> Rollout:
    ((rollout,),) = await runner.run([task], prior, samples=1, sampling=sampling)
    return rollout


def _normal(task: Sequence[Observation]) -> tuple[Matrix, list[float]]:
    """Return a task's part of the normal equations, X'X and X'y, with the task's own means taken off."""
    width, mean = len(task[0][0]), fmean(reward for _, reward in task)
    centre = [fmean(half[entry] for half, _ in task) for entry in range(width)]
    rows = [[given - middle for given, middle in zip(half, centre, strict=True)] for half, _ in task]
    square = [[sum(row[a] * row[b] for row in rows) for b in range(width)] for a in range(width)]
    right = [sum(row[a] * (reward - mean) for row, (_, reward) in zip(rows, task, strict=True)) for a in range(width)]
    return square, right


def _added(parts: Sequence[tuple[Matrix, list[float]]], width: int) -> tuple[Matrix, list[float]]:
    square = [[sum(part[0][a][b] for part in parts) for b in range(width)] for a in range(width)]
    return square, [sum(part[1][a] for part in parts) for a in range(width)]


def _taken(whole: tuple[Matrix, list[float]], part: tuple[Matrix, list[float]]) -> tuple[Matrix, list[float]]:
    square = [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(whole[0], part[0], strict=True)]
    return square, [x - y for x, y in zip(whole[1], part[1], strict=True)]


def _solved(square: Matrix, right: list[float]) -> list[float]:
    """Return the effects that solve the normal equations; UsageError where they leave something open."""
    try:
        return [value for (value,) in additive.solved(square, [[value] for value in right])]
    except additive.Singular as error:
        raise UsageError(
            f"too few rollouts to tell {len(square)} entries apart: give more tasks or a larger --k", field="k"
        ) from error
