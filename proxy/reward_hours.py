"""Adds the labels up by the hour: how many of the trajectories that began in it have a reward, and what it comes to.

It follows the labels in the order in which they came. A trajectory that is judged again is not counted again: what it
came to before is taken back. A label whose exchange has not landed when its turn comes is passed by.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Final

from tfgrpo.rewards import Placed, rewards
from tfgrpo.store import Difference, Place, Store
from tfgrpo.store.hours import HOUR, Spot
from tfgrpo.types import Label
from tfgrpo.weighing import REWARD_ONLY, Metrics

LANDING_SECONDS: Final = 5.0
"""What is younger may still be on its way to the store, and would be passed by."""


class RewardHours:
    """Counts labels. All calls block. `metrics` and `share` say what labels come to, as for training."""

    def __init__(
        self,
        store: Store,
        *,
        metrics: Metrics = REWARD_ONLY,
        share: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._share = share
        self._clock = clock

    def count(self) -> bool:
        """Count the next labels, some hundred at most; False when there are none left."""
        after = self._store.hours.counted()
        labels = self._store.hours.uncounted(after, until=self._clock() - LANDING_SECONDS)
        if not labels:
            return False
        to = _place(labels[-1])
        changes: defaultdict[Spot, Difference] = defaultdict(Difference)
        for app, names in self._judged(labels).items():
            given = self._store.traffic.assignments(app, names)
            for name, placed in _by_trajectory(self._store.labels.placed_on(app, names)).items():
                assignment = given.get(name)
                if assignment is not None:
                    spot = assignment.set or "", int(assignment.started_at // HOUR), assignment.arm
                    changes[spot] += self._change(placed, after, to)
        return self._store.hours.count(changes, after=after, to=to)

    def _judged(self, labels: Sequence[Label]) -> dict[str, list[str]]:
        """The trajectories that these labels speak of, by app."""
        exchanges = [one.exchange for one in labels if one.exchange is not None]
        of = self._store.traffic.trajectories_of(exchanges)
        found: defaultdict[str, set[str]] = defaultdict(set)
        for one in labels:
            if one.exchange is None and one.trajectory is not None:
                found[one.app].add(one.trajectory)
            elif one.exchange is not None and (one.app, one.exchange) in of:
                found[one.app].add(of[one.app, one.exchange])
        return {app: sorted(names) for app, names in found.items()}

    def _change(self, placed: Sequence[Placed], after: Place, to: Place) -> Difference:
        """What the labels of one trajectory between two places change of its reward."""
        before = self._reward(one for one in placed if _place(one.label) <= after)
        now = self._reward(one for one in placed if _place(one.label) <= to)
        return Difference((now is not None) - (before is not None), (now or 0.0) - (before or 0.0))

    def _reward(self, placed: Iterable[Placed]) -> float | None:
        """The mean reward of a trajectory's rollouts: it has several where several answers were asked for."""
        values = [reward.value for reward in rewards(placed, self._metrics, share=self._share).values()]
        return fmean(values) if values else None


def _by_trajectory(placed: Iterable[Placed]) -> dict[str, list[Placed]]:
    found: defaultdict[str, list[Placed]] = defaultdict(list)
    for one in placed:
        found[one.trajectory].append(one)
    return found


def _place(label: Label) -> Place:
    return label.created_at, label.app, label.feedback_id
