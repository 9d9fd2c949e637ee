"""How labels of several metrics come to one reward: each mapped to [0, 1], then their weighted mean. Pure.

Within a group all rollouts are weighed by the same metrics, for otherwise two rollouts could differ in reward because
one of them has a label more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias, TypeVar

import msgspec

K = TypeVar("K")


class Metric(msgspec.Struct, frozen=True):
    """What a metric weighs, and which of its values stand for 0 and for 1; between them it is linear.

    `worst` may lie above `best`: seconds, 30 to 2.
    """

    weight: float = 1.0
    worst: float = 0.0
    best: float = 1.0

    def share(self, value: float) -> float:
        """Return a value of the metric as a number in [0, 1]; values beyond the ends count as the ends."""
        return min(1.0, max(0.0, (value - self.worst) / (self.best - self.worst)))


Metrics: TypeAlias = Mapping[str, Metric]

REWARD_ONLY: Final[Metrics] = {"reward": Metric()}


def weighed(shares: Mapping[str, float], metrics: Metrics) -> float:
    """Return the weighted mean of shares by metric; there must be one."""
    total = sum(metrics[name].weight for name in shares)
    return sum(metrics[name].weight * share for name, share in shares.items()) / total


def alike(rollouts: Mapping[K, Collection[str]], metrics: Metrics) -> dict[K, tuple[str, ...]]:
    """Return for each rollout of a group the metrics it is weighed by: the same for all, of those it has labels of.

    These are the metrics that all of them have. Where there is none, those that most of the rollouts have (of equally
    many the heaviest), and the rollouts without them are left out. Each rollout has at least one of `metrics`.
    """
    common = set(metrics).intersection(*rollouts.values())
    if not common:
        counted = Counter(tuple(sorted(names)) for names in rollouts.values())
        most = max(counted.values())
        candidates = [names for names, count in counted.items() if count == most]
        common = set(max(candidates, key=lambda names: (sum(metrics[name].weight for name in names), names)))
    kept = tuple(sorted(common))
    return {one: kept for one, names in rollouts.items() if common <= set(names)}
