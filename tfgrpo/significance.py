"""Whether paired differences between two libraries are more than chance. Pure: numbers in, numbers out.

The unit is the task: one difference each. The test is by sign flips, for when the libraries do not differ each task's
difference is as likely to be its opposite; its interval is found by inversion, through the means of subsets (Hartigan
1969, "Using subsample values as typical values"). Below `EXACT_BELOW` tasks all subsets are taken, from there on many
random ones. A bootstrap would be too sure of itself here: with 20 to 30 tasks that are mostly all right or all wrong,
BCa intervals say `helps` or `hurts` in 9 of 100 comparisons of equals.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, comb, floor, log2, pi, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Final, Literal, TypeAlias

Verdict: TypeAlias = Literal["helps", "hurts", "no effect shown"]

EXACT_BELOW: Final = 20
ALPHA: Final = 0.05
POWER: Final = 0.8
SUBSETS: Final = 20_000
"""Random subsets: they place the ends of a 95 percent interval within about a tenth of a percent."""

_NORMAL: Final = NormalDist()
_PASSED: Final = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Comparison:
    """What paired differences show. `smallest_detectable` is the effect that would be seen with 80 percent power."""

    difference: float
    interval: tuple[float, float]
    smallest_detectable: float
    verdict: Verdict


def compare(differences: Sequence[float], *, samples: int, seed: int = 0, alpha: float = ALPHA) -> Comparison:
    """Compare by one difference per task, each in [-1, 1] and the mean of `samples` samples."""
    low, high = sign_flip_interval(differences, alpha, seed=seed)
    verdict: Verdict = "helps" if low > 0 else "hurts" if high < 0 else "no effect shown"
    return Comparison(
        difference=fmean(differences),
        interval=(low, high),
        smallest_detectable=smallest_detectable(differences, samples, alpha),
        verdict=verdict,
    )


def level(use: int, alpha: float = ALPHA) -> float:
    """Return at which level the `use`-th use (from 1) of the same held-out tasks is tested.

    alpha x 6 / (pi^2 use^2): all levels together come to alpha, however often the tasks are used (the sum of 1/k^2 is
    pi^2/6), so that by the union bound a false verdict in any of the uses stays as rare as in one.
    """
    return alpha * 6 / (pi * use) ** 2


def fewest(alpha: float = ALPHA) -> int:
    """Return under how many tasks no sign-flip test can reject: 2 of the 2**n outcomes are more than `alpha`."""
    return ceil(log2(2 / alpha))


def sign_flip_interval(differences: Sequence[float], alpha: float = ALPHA, *, seed: int = 0) -> tuple[float, float]:
    """Return the mean differences that a two-sided sign-flip test does not reject; the same seed, the same interval.

    (-1, 1), the whole range, when there are too few tasks for any to be rejected, or too few subsets for the level.
    """
    exact = len(differences) < EXACT_BELOW
    subsets = _all_subsets(differences) if exact else _random_subsets(differences, random.Random(seed))  # noqa: S311 - resampling, no secret
    # Rounding keeps sums of equal differences equal, whatever their order. The empty subset has no mean.
    means = sorted(round(total / size, 12) for total, size in subsets if size)
    rank = floor(alpha / 2 * (len(means) + 1))
    return (means[rank - 1], means[-rank]) if rank >= 1 else (-1.0, 1.0)


def share_interval(share: float, tasks: int, alpha: float = ALPHA) -> tuple[float, float]:
    """Return an interval for the mean over all such tasks, of which `tasks` had the mean `share`, each in [0, 1].

    Wilson's (1927, "Probable inference, the law of succession, and statistical inference"), as if each task were all
    right or all wrong. Nothing in [0, 1] spreads more than that: the interval errs on the wide side, and a mean of 1
    does not pass for certainty.
    """
    z = _NORMAL.inv_cdf(1 - alpha / 2)
    spread = z * sqrt(share * (1 - share) / tasks + z * z / (4 * tasks * tasks))
    middle, scale = share + z * z / (2 * tasks), 1 + z * z / tasks
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def pass_at(rewards: Sequence[float], k: int) -> float:
    """Return Pass@k of one task: the chance that of k of its samples at least one has the full reward.

    The unbiased estimator 1 - C(n - c, k) / C(n, k) of Chen et al. 2021 (arXiv 2107.03374, section 2.1) for n samples
    of which c passed; n is at least k.
    """
    failed = sum(reward < _PASSED for reward in rewards)
    return 1 - comb(failed, k) / comb(len(rewards), k)


def smallest_detectable(differences: Sequence[float], samples: int, alpha: float = ALPHA) -> float:
    """Return the smallest mean difference that as many tasks with as much noise would show.

    Never less than what the fewest tasks that can show anything come to when each moves by one sample: where no task
    moved, noise cannot be seen.
    """
    n = len(differences)
    if n < fewest(alpha):
        return 1.0
    # Student's t in place of the normal: with a dozen tasks the noise itself is only roughly known.
    errors = _student(1 - alpha / 2, n - 1) + _student(POWER, n - 1)
    return min(1.0, max(errors * stdev(differences) / sqrt(n), fewest(alpha) / (n * samples)))


def quantiles(alpha: float) -> float:
    """Return how many standard errors an effect must be large to be shown at `alpha` with 80 percent power."""
    return _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(POWER)


def _student(share: float, freedom: int) -> float:
    """Return a quantile of Student's t by its expansion (Abramowitz and Stegun, 26.7.5), good from 5 degrees on."""
    z = _NORMAL.inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def _all_subsets(differences: Sequence[float]) -> list[tuple[float, int]]:
    """Return sum and size of every subset."""
    subsets = [(0.0, 0)]
    for value in differences:
        subsets += [(total + value, size + 1) for total, size in subsets]
    return subsets


def _random_subsets(differences: Sequence[float], rng: random.Random) -> list[tuple[float, int]]:
    """Return sum and size of random subsets, each difference in it by a fair coin; eight coins are one look-up."""
    tables = [_all_subsets(differences[at : at + 8]) for at in range(0, len(differences), 8)]
    subsets = []
    for _ in range(SUBSETS):
        coins = rng.randbytes(len(tables))
        parts = [table[coin % len(table)] for table, coin in zip(tables, coins, strict=True)]
        subsets.append((sum(part[0] for part in parts), sum(part[1] for part in parts)))
    return subsets
