"""The effect of one arm against another on an outcome in [0, 1], per trajectory, from arms that were drawn.

Inverse-probability weighting (Horvitz and Thompson 1952): a trajectory of the one arm counts its outcome divided by
the probability of the draw, one of the other arm the negative of that, any other 0. Over the draw the mean of this is
the difference between what the trajectory would have come to in the two arms, whatever trajectories come and however
outcomes drift: the draws are the only chance that is assumed (design-based, as in Ham, Bojinov, Lindon and Tingley
2022, "Design-based confidence sequences", arXiv 2210.08639). Outcomes are centred by their running mean over earlier
trajectories of all arms, which changes no mean and takes most of the noise away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tfgrpo.experiment.sequence import Sequence
from tfgrpo.types import Arm

MEMORY: Final = 200
"""How many trajectories the running mean remembers, about: enough to be still, few enough to follow the day."""


class Centre:
    """The running mean of outcomes in [0, 1]: of all so far, then of about the last `MEMORY`."""

    __slots__ = ("_count", "value")

    def __init__(self) -> None:
        self.value = 0.5
        self._count = 1

    def add(self, outcome: float) -> None:
        """Count one more outcome."""
        self._count = min(self._count + 1, MEMORY)
        self.value += (outcome - self.value) / self._count


class Effect:
    """The effect of `arm` against `other`, as a confidence sequence over the trajectories in their order.

    `shares` holds the probability of each arm, above 0 for both.
    """

    __slots__ = ("_arm", "_centre", "_other", "_shares", "sequence")

    def __init__(self, arm: Arm, other: Arm, shares: Mapping[Arm, float]) -> None:
        self._arm, self._other = arm, other
        self._shares = shares[arm], shares[other]
        self._centre = Centre()
        self.sequence = Sequence(1 / min(self._shares))

    def add(self, arm: Arm, outcome: float | None) -> None:
        """Count a trajectory of any arm. None: its outcome is not known, and stands at the running mean."""
        share, others = self._shares
        middle, score = self._centre.value, 0.0
        if outcome is not None:
            if arm == self._arm:
                score = (outcome - middle) / share
            elif arm == self._other:
                score = (middle - outcome) / others
            self._centre.add(outcome)
        low = -max(middle / share, (1 - middle) / others)
        high = max((1 - middle) / share, middle / others)
        self.sequence.add(score, low=low, high=high)
