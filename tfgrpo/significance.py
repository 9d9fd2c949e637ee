"""Whether paired differences between two libraries are more than chance. Pure: numbers in, numbers out.

The unit is the task: one difference each. Below `EXACT_BELOW` tasks the sign-flip test is exact, and its interval is
found by inversion through the means of subsets (Hartigan 1969, "Using subsample values as typical values"); from
there on the interval is a bias-corrected and accelerated bootstrap over tasks (Efron 1987).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Final, Literal, TypeAlias

Verdict: TypeAlias = Literal["helps", "hurts", "no effect shown"]

EXACT_BELOW: Final = 20
ALPHA: Final = 0.05
POWER: Final = 0.8
RESAMPLES: Final = 4_000

_NORMAL: Final = NormalDist()
_FEWEST: Final = 6
"""Under so many tasks no sign-flip test can reject at 5 percent: 2 of 2**5 outcomes are more than that."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What paired differences show. `smallest_detectable` is the effect that would be seen with 80 percent power."""

    difference: float
    interval: tuple[float, float]
    smallest_detectable: float
    verdict: Verdict
    method: Literal["sign-flip", "bootstrap"]


def compare(differences: Sequence[float], *, samples: int, seed: int = 0, alpha: float = ALPHA) -> Comparison:
    """Compare by one difference per task, each in [-1, 1] and the mean of `samples` samples."""
    exact = len(differences) < EXACT_BELOW
    low, high = sign_flip_interval(differences, alpha) if exact else bootstrap_interval(differences, alpha, seed)
    verdict: Verdict = "helps" if low > 0 else "hurts" if high < 0 else "no effect shown"
    return Comparison(
        difference=fmean(differences),
        interval=(low, high),
        smallest_detectable=smallest_detectable(differences, samples, alpha),
        verdict=verdict,
        method="sign-flip" if exact else "bootstrap",
    )


def sign_flip_interval(differences: Sequence[float], alpha: float = ALPHA) -> tuple[float, float]:
    """Return the mean differences that an exact two-sided sign-flip test does not reject.

    (-1, 1), the whole range, when there are too few tasks for any to be rejected.
    """
    sums = [0.0]
    sizes = [0]
    for value in differences:
        sums += [total + value for total in sums]
        sizes += [size + 1 for size in sizes]
    rank = floor(alpha / 2 * len(sums))
    if rank < 1:
        return -1.0, 1.0
    # Rounding keeps sums of equal differences equal, whatever their order.
    means = sorted(round(total / size, 12) for total, size in zip(sums[1:], sizes[1:], strict=True))
    return means[rank - 1], means[-rank]


def bootstrap_interval(differences: Sequence[float], alpha: float = ALPHA, seed: int = 0) -> tuple[float, float]:
    """Return the BCa interval of the mean; the same seed, the same interval."""
    n, observed = len(differences), fmean(differences)
    if len(set(differences)) == 1:
        return observed, observed
    rng = random.Random(seed)  # noqa: S311 - resampling, no secret
    means = sorted(fmean(rng.choices(differences, k=n)) for _ in range(RESAMPLES))
    below = (sum(m < observed for m in means) + sum(m <= observed for m in means)) / 2
    bias = _NORMAL.inv_cdf(min(max(below / RESAMPLES, 1 / RESAMPLES), 1 - 1 / RESAMPLES))
    skew = sum((value - observed) ** 3 for value in differences)
    spread = sum((value - observed) ** 2 for value in differences)
    acceleration = skew / (6 * spread**1.5)

    def bound(level: float) -> float:
        z = bias + _NORMAL.inv_cdf(level)
        at = _NORMAL.cdf(bias + z / (1 - acceleration * z))
        return means[min(RESAMPLES - 1, max(0, floor(at * RESAMPLES)))]

    return bound(alpha / 2), bound(1 - alpha / 2)


def smallest_detectable(differences: Sequence[float], samples: int, alpha: float = ALPHA) -> float:
    """Return the smallest mean difference that as many tasks with as much noise would show.

    Never less than what six tasks that each move by one sample come to: where no task moved, noise cannot be seen.
    """
    n = len(differences)
    if n < _FEWEST:
        return 1.0
    z = _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(POWER)
    return min(1.0, max(z * stdev(differences) / sqrt(n), _FEWEST / (n * samples)))
