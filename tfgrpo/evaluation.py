"""The held-out comparison of two libraries: fresh rollouts on both sides, paired by task and sample.

It decides nothing about sets or deployments; whoever asks for the comparison acts on the verdict. A gate does
    result = await evaluate(runner, tasks, tested=..., against=..., samples=..., sampling=..., guards=..., margin=...)
    use = store.evidence.claim(key_of(...), Claim(...))       the same comparison again is the same use
    result = result.at(significance.level(use, 1 - confidence))
and goes by `result.verdict`: the interval at that level, and no guard harmed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal, TypeAlias

from tfgrpo import planning, significance
from tfgrpo.errors import GraderError, ModelError
from tfgrpo.rollouts import Prior, Runner, Sampling
from tfgrpo.types import Rollout, Task

JSON: TypeAlias = dict[str, Any]
GuardVerdict: TypeAlias = Literal["unharmed", "harmed", "unclear"]

MARGIN = 0.02


@dataclass(frozen=True, slots=True)
class Guard:
    """Tasks that a set was not made for, and which must not get worse. `name` is how people know them."""

    name: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Guarded:
    """What came of a guard: a test of non-inferiority.

    `unharmed` when the interval lies above -margin, `harmed` when it lies below 0, else `unclear`: too few tasks or
    samples to say.
    """

    name: str
    comparison: significance.Comparison
    verdict: GuardVerdict
    tasks: int

    def as_json(self) -> JSON:
        """Return the guard as the command line prints it."""
        return {
            "guard": self.name,
            "verdict": self.verdict,
            "difference": self.comparison.difference,
            "interval": list(self.comparison.interval),
            "smallest_detectable": self.comparison.smallest_detectable,
            "n": self.tasks,
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One library's rollouts: Mean@k, Pass@k, and what they took. What no rollout knows is None.

    `usd` is what was paid now: an answer from the memo costs nothing again.
    """

    mean: float
    mean_interval: tuple[float, float]
    passed: float
    passed_interval: tuple[float, float]
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    tool_calls: int
    failed: int

    def as_json(self) -> JSON:
        """Return the side as the command line prints it."""
        return {
            "mean": self.mean,
            "mean_interval": list(self.mean_interval),
            "pass": self.passed,
            "pass_interval": list(self.passed_interval),
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "usd": self.usd,
            "tool_calls": self.tool_calls,
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A comparison with both sides, its guards, and how much rewards varied.

    Rollouts without an answer earn 0 like any wrong one; the `unjudged`, on which the grader failed, are left out, and
    with them tasks of which too few remain. `passed` compares Pass@k; it decides nothing.
    """

    differences: tuple[float, ...]
    comparison: significance.Comparison
    passed: significance.Comparison
    level: float
    tested: Side
    against: Side
    samples: int
    pass_at: int
    seed: int
    variance: planning.Variance | None
    guards: tuple[Guarded, ...] = ()
    unjudged: int = 0

    @property
    def verdict(self) -> significance.Verdict:
        """What all of it shows: a harmed guard hurts, one that is unclear leaves nothing shown to help."""
        found = {guard.verdict for guard in self.guards}
        if "harmed" in found:
            return "hurts"
        helps = self.comparison.verdict == "helps"
        return "no effect shown" if helps and "unclear" in found else self.comparison.verdict

    def word(self, minimum_effect: float) -> significance.Verdict:
        """Return the verdict as a gate says it: an effect that is too small to be wanted is none."""
        if self.verdict == "helps" and self.comparison.difference < minimum_effect:
            return "no effect shown"
        return self.verdict

    @property
    def tasks(self) -> int:
        """How many tasks were compared."""
        return len(self.differences)

    @property
    def mean(self) -> float:
        """The mean reward of the tested side."""
        return self.tested.mean

    @property
    def mean_against(self) -> float:
        """The mean reward of the other side."""
        return self.against.mean

    @property
    def failed(self) -> int:
        """How many rollouts gave no answer."""
        return self.tested.failed + self.against.failed

    def at(self, level: float) -> Evaluation:
        """Return the same rollouts judged at another level; guards keep theirs."""
        judged = significance.compare(self.differences, samples=self.samples, seed=self.seed, alpha=level)
        return replace(self, comparison=judged, level=level)

    def as_json(self) -> JSON:
        """Return the comparison as the command line prints it."""
        return {
            "verdict": self.verdict,
            "difference": self.comparison.difference,
            "interval": list(self.comparison.interval),
            "smallest_detectable": self.comparison.smallest_detectable,
            "level": self.level,
            "mean": self.mean,
            "mean_against": self.mean_against,
            "n": self.tasks,
            "k": self.samples,
            "pass_at": self.pass_at,
            "pass_difference": self.passed.difference,
            "pass_difference_interval": list(self.passed.interval),
            "tested": self.tested.as_json(),
            "baseline": self.against.as_json(),
            "guards": [guard.as_json() for guard in self.guards],
            "failed": self.failed,
            "unjudged": self.unjudged,
        }


async def evaluate(
    runner: Runner,
    tasks: Sequence[Task],
    *,
    tested: Prior,
    against: Prior,
    samples: int,
    sampling: Sampling,
    guards: Sequence[Guard] = (),
    margin: float = MARGIN,
    alpha: float = significance.ALPHA,
    pass_at: int | None = None,
) -> Evaluation:
    """Compare what the libraries `tested` and `against` do to the policy model on `tasks`.

    Each task is run `samples` times under each; sample i of both sides carries the same seed. The guards share
    `alpha` among them (Bonferroni). `pass_at` is the k of Pass@k, at most and by default `samples`.

    Raises:
        ModelError: no rollout of `tasks` on either side gave an answer; the message holds the first one's error.
        GraderError: the grader failed on so many rollouts that no task can be compared.
    """
    ours = await runner.run(tasks, tested, samples=samples, sampling=sampling)
    theirs = await runner.run(tasks, against, samples=samples, sampling=sampling)
    _require_answers([*ours, *theirs])
    unjudged = sum(one.reward is None for group in (*ours, *theirs) for one in group)
    ours, theirs = _judged(ours, theirs)
    k = pass_at or samples
    differences = _differences(ours, theirs)
    passed = [_passed(a, k) - _passed(b, k) for a, b in _pairs(ours, theirs)]
    return Evaluation(
        differences=differences,
        comparison=significance.compare(differences, samples=samples, seed=sampling.seed, alpha=alpha),
        passed=significance.compare(passed, samples=1, seed=sampling.seed, alpha=alpha),
        level=alpha,
        tested=_side(ours, k, alpha),
        against=_side(theirs, k, alpha),
        samples=samples,
        pass_at=k,
        seed=sampling.seed,
        variance=planning.observed([_rewards(one) for one in ours], [_rewards(one) for one in theirs]),
        guards=tuple(
            [
                await _guarded(
                    runner,
                    guard,
                    priors=(tested, against),
                    samples=samples,
                    sampling=sampling,
                    margin=margin,
                    alpha=alpha / len(guards),
                )
                for guard in guards
            ]
        ),
        unjudged=unjudged,
    )


def split_of(tasks: Sequence[Task]) -> str:
    """Return the name of a held-out split: a hash of its tasks, whatever their order."""
    return hashlib.sha256("\n".join(sorted(task.key for task in tasks)).encode()).hexdigest()[:32]


def key_of(
    tasks: Sequence[Task],
    priors: Sequence[Prior],
    *,
    model: str,
    samples: int,
    sampling: Sampling,
    grader: str,
    runner: str = "chat",
) -> str:
    """Return the name of a comparison. Comparisons of one name draw the very same rollouts, and say nothing new."""
    libraries = [[one.text for one in prior.library.experiences] for prior in priors]
    parts = [split_of(tasks), libraries, model, samples, sampling.temperature, sampling.seed, grader]
    # Names from before there were other runners stay what they are.
    parts += [] if runner == "chat" else [runner]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


async def _guarded(
    runner: Runner,
    guard: Guard,
    *,
    priors: tuple[Prior, Prior],
    samples: int,
    sampling: Sampling,
    margin: float,
    alpha: float,
) -> Guarded:
    made = [await runner.run(guard.tasks, prior, samples=samples, sampling=sampling) for prior in priors]
    ours, theirs = _judged(*made)
    found = significance.compare(_differences(ours, theirs), samples=samples, seed=sampling.seed, alpha=alpha)
    low, high = found.interval
    verdict: GuardVerdict = "harmed" if high < 0 else "unharmed" if low > -margin else "unclear"
    return Guarded(guard.name, found, verdict, len(ours))


def _require_answers(groups: Sequence[Sequence[Rollout]]) -> None:
    rollouts = [one for group in groups for one in group]
    if all(one.error is not None for one in rollouts):
        raise ModelError(
            f"none of {len(rollouts)} rollouts gave an answer, so there is nothing to compare; the first error: "
            f"{rollouts[0].error}"
        )


def _pairs(
    ours: Sequence[Sequence[Rollout]], theirs: Sequence[Sequence[Rollout]]
) -> list[tuple[Sequence[Rollout], Sequence[Rollout]]]:
    return list(zip(ours, theirs, strict=True))


def _differences(ours: Sequence[Sequence[Rollout]], theirs: Sequence[Sequence[Rollout]]) -> tuple[float, ...]:
    # Rounding takes away what the order of sums leaves behind: equal means are equal.
    return tuple(round(fmean(_rewards(a)) - fmean(_rewards(b)), 12) for a, b in _pairs(ours, theirs))


def _judged(
    ours: Sequence[tuple[Rollout, ...]], theirs: Sequence[tuple[Rollout, ...]]
) -> tuple[list[tuple[Rollout, ...]], list[tuple[Rollout, ...]]]:
    """Return the rollouts that have a reward, of the tasks with two or more on both sides (one where one was made).

    Raises:
        GraderError: no task remains.
    """
    kept = []
    for a, b in zip(ours, theirs, strict=True):
        both = [tuple(one for one in side if one.reward is not None) for side in (a, b)]
        if min(map(len, both)) >= min(2, len(a)):
            kept.append(both)
    if not kept:
        raise GraderError(f"the grader failed on so many rollouts that none of {len(ours)} tasks can be compared")
    return [a for a, _ in kept], [b for _, b in kept]


def _rewards(rollouts: Sequence[Rollout]) -> list[float]:
    return [rollout.reward for rollout in rollouts if rollout.reward is not None]


def _passed(rollouts: Sequence[Rollout], k: int) -> float:
    return significance.pass_at(_rewards(rollouts), min(k, len(rollouts)))


def _side(groups: Sequence[Sequence[Rollout]], k: int, alpha: float) -> Side:
    rollouts = [one for group in groups for one in group]
    mean = fmean(_rewards(rollouts))
    passed = fmean(_passed(group, k) for group in groups)
    answered = [one for one in rollouts if one.error is None]
    costs = [one.usd for one in answered if one.usd is not None]
    return Side(
        mean=mean,
        mean_interval=significance.share_interval(mean, len(groups), alpha),
        passed=passed,
        passed_interval=significance.share_interval(passed, len(groups), alpha),
        prompt_tokens=_total([one.prompt_tokens for one in answered]),
        completion_tokens=_total([one.completion_tokens for one in answered]),
        usd=sum(costs) if len(costs) == len(answered) else None,
        tool_calls=sum(len(message.tool_calls) for one in rollouts for message in one.messages),
        failed=len(rollouts) - len(answered),
    )


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
