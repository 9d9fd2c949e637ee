"""The books of one experiment: what is known of each arm, and the effects between each two.

Two orders are kept apart. *Settled* trajectories enter in the order in which they began, each with the label it had at
a fixed age: the effects on them rest on the draws alone, whatever an arm does to who labels and when. *First labels*
enter as they come: that is sooner, and right where the arms differ in nothing; it is for rolling back, not for proof.

A trajectory that nobody labelled is counted three ways: at the running mean of those that were (`reward`), as 0
(`missing_as_0`) and as 1 (`missing_as_1`). The first alone would take an arm whose unhappy users keep silent for a
better one. The other two are the shares of trajectories judged good, and not judged bad: both rise only where reward
does, if an arm makes people label more or label less, but not some of them more and others less. `worst` and
`best` are the bounds without any assumption: what is missing is 0 in the one arm and 1 in the other, and the reverse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

import msgspec

from tfgrpo.experiment.effect import Centre, Effect
from tfgrpo.types import Arm

ARMS: Final[tuple[Arm, ...]] = ("candidate", "live", "control")


class Seen(msgspec.Struct, frozen=True):
    """What a drawn trajectory had come to at a fixed age. `reward` None: nobody labelled it.

    `fresh`: it belongs to a group that neither version was trained on. `tokens` and `seconds` are those of its
    answers, `finish` is why the last of them ended; None where unknown.
    """

    arm: Arm
    reward: float | None
    fresh: bool = False
    tokens: int | None = None
    seconds: float | None = None
    finish: str | None = None


class Tally:
    """Sums over the settled trajectories of one arm. A mean is None without any."""

    def __init__(self) -> None:
        self.n = self.labelled = self.counted = self.timed = self.tokens = 0
        self.rewards = self.seconds = 0.0

    def add(self, seen: Seen) -> None:
        """Count one trajectory."""
        self.n += 1
        if seen.reward is not None:
            self.labelled += 1
            self.rewards += seen.reward
        if seen.tokens is not None:
            self.counted += 1
            self.tokens += seen.tokens
        if seen.seconds is not None:
            self.timed += 1
            self.seconds += seen.seconds


class Pair:
    """The effects of one arm against another on the settled trajectories."""

    def __init__(self, arm: Arm, other: Arm, shares: Mapping[Arm, float]) -> None:
        self.arm, self.other = arm, other
        self.reward, self.fresh = Effect(arm, other, shares), Effect(arm, other, shares)
        self.missing_as_0, self.missing_as_1 = Effect(arm, other, shares), Effect(arm, other, shares)
        self.worst, self.best = Effect(arm, other, shares), Effect(arm, other, shares)
        self.labelled = Effect(arm, other, shares)
        self.longer, self.slower = Effect(arm, other, shares), Effect(arm, other, shares)
        self.unusual = Effect(arm, other, shares)

    def add(self, seen: Seen, *, longer: bool | None, slower: bool | None, unusual: bool | None) -> None:
        """Count one trajectory of any arm: longer and slower than the median, ended in another way than most."""
        arm, reward = seen.arm, seen.reward
        self.reward.add(arm, reward)
        self.missing_as_0.add(arm, 0.0 if reward is None else reward)
        self.missing_as_1.add(arm, 1.0 if reward is None else reward)
        self.worst.add(arm, float(arm != self.arm) if reward is None else reward)
        self.best.add(arm, float(arm == self.arm) if reward is None else reward)
        self.labelled.add(arm, float(reward is not None))
        if seen.fresh:
            self.fresh.add(arm, reward)
        for effect, passed in ((self.longer, longer), (self.slower, slower), (self.unusual, unusual)):
            if passed is not None:
                effect.add(arm, float(passed))


class Account:
    """One experiment. `shares` holds the probability of each arm; arms of share 0 are left out."""

    def __init__(self, shares: Mapping[Arm, float]) -> None:
        self.shares = {arm: shares[arm] for arm in ARMS if shares.get(arm, 0.0) > 0}
        self.tallies = {arm: Tally() for arm in self.shares}
        self.pairs = {(arm, other): Pair(arm, other, self.shares) for arm, other in combinations(self.shares, 2)}
        both = {"candidate", "live"} <= self.shares.keys()
        self.early = Effect("candidate", "live", self.shares) if both else None
        self.failed = Effect("candidate", "live", self.shares) if both else None
        self._length, self._pace = _Median(), _Median()
        self._finishes: Counter[str] = Counter()

    def settle(self, seen: Seen) -> None:
        """Count a trajectory at the age at which its labels are looked at. In the order of their beginning."""
        if seen.arm not in self.shares:
            return
        self.tallies[seen.arm].add(seen)
        longer, slower = self._length.passed_by(seen.tokens), self._pace.passed_by(seen.seconds)
        unusual = self._unusual(seen.finish)
        for pair in self.pairs.values():
            pair.add(seen, longer=longer, slower=slower, unusual=unusual)

    def label(self, arm: Arm, reward: float) -> None:
        """Count the first label of a trajectory. In the order of their coming."""
        if self.early is not None and arm in self.shares:
            self.early.add(arm, reward)

    def end(self, arm: Arm, *, failed: bool) -> None:
        """Count whether an exchange of a trajectory failed in its first hour. In the order of their beginning."""
        if self.failed is not None and arm in self.shares:
            self.failed.add(arm, float(failed))

    def against_live(self) -> Pair | None:
        """Return the effects of the candidate against live; None where one of them is not drawn."""
        return self.pairs.get(("candidate", "live"))

    def _unusual(self, finish: str | None) -> bool | None:
        """Say whether it ended in another way than most before it, then count it; None for the first."""
        if finish is None:
            return None
        most = self._finishes.most_common(1)
        self._finishes[finish] += 1
        return finish != most[0][0] if most else None

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs.values())


class _Median:
    """A running median of positive numbers, by steps of its own logarithm (Robbins and Monro 1951)."""

    def __init__(self) -> None:
        self._value: float | None = None
        self._side = Centre()

    def passed_by(self, number: float | None) -> bool | None:
        """Say whether `number` lies above the median of those before it, then count it; None for the first."""
        if number is None:
            return None
        if self._value is None:
            self._value = float(number)
            return None
        above = number > self._value
        self._value *= 1.05 if above else 1 / 1.05
        return above
