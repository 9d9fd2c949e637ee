"""What the labels of one target come to while no label stands beside another of its metric: small values, shared.

It is for a million of them: whatever was said before in the same words is the same object, so that a look at it is all
that a target costs. `rewards` has the rule; what cannot be told here is `UNCLEAR`, and is worked out there.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tfgrpo.rewards import Reward
from tfgrpo.weighing import Metrics, weighed

MANY: Final = 20_000
"""How many are shared. Scores with many digits are different nearly always, and keeping them would only take memory."""


class Verdict(msgspec.Struct, gc=False):
    """The label of one metric, and those of others (`more`). `names` are all their metrics; `value` is their reward."""

    metric: str
    share: float
    key: str
    """The keyed hash of the key that gave the label."""
    more: Verdict | None
    names: tuple[str, ...]
    value: float

    def reward(self) -> Reward:
        """Return the reward that it is, without what the labels say."""
        return Reward(self.value, shares={one.metric: one.share for one in _parts(self)})


UNCLEAR: Final = Verdict("", 0.0, "", None, (), 0.0)
"""Known by identity. It takes a look at all labels."""


class Verdicts:
    """Makes them, for one weighing of metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.shared: dict[tuple[str | float, ...], Verdict] = {}
        """By metric, value and, where it was told, key: what one label says, for a look without a call."""
        self._joined: dict[tuple[int, int], tuple[Verdict, Verdict, Verdict]] = {}

    def alone(self, metric: str, value: float, key: str = "") -> Verdict:
        """Return what one label says. Whose it is need not be told where all count."""
        words = (metric, value, key) if key else (metric, value)
        found = self.shared.get(words)
        if found is None:
            found = self._made(metric, self._metrics[metric].share(value), key, None)
            if len(self.shared) < MANY:
                self.shared[words] = found
        return found

    def joined(self, one: Verdict, other: Verdict) -> Verdict:
        """Return what both say; unclear where they speak of the same metric: one may replace the other."""
        known = self._joined.get((id(one), id(other)))
        if known is not None:
            return known[2]
        found = self._join(one, other)
        if len(self._joined) < MANY:
            # Both are kept: what is gone could leave its id to another.
            self._joined[id(one), id(other)] = one, other, found
        return found

    def of_others(self, verdict: Verdict, key: str) -> Verdict | None:
        """Return what is left of it without the labels that this key gave."""
        if verdict.more is None:
            return None if verdict.key == key else verdict
        parts = _parts(verdict)
        kept = [part for part in parts if part.key != key]
        if len(kept) == len(parts):
            return verdict
        left: Verdict | None = None
        for part in kept:
            left = self._made(part.metric, part.share, part.key, left)
        return left

    def _join(self, one: Verdict, other: Verdict) -> Verdict:
        if one is UNCLEAR or other is UNCLEAR:
            return UNCLEAR
        found = one
        for part in _parts(other):
            if part.metric in found.names:
                return UNCLEAR
            found = self._made(part.metric, part.share, part.key, found)
        return found

    def _made(self, metric: str, share: float, key: str, more: Verdict | None) -> Verdict:
        names = (metric,) if more is None else tuple(sorted((metric, *more.names)))
        shares = {metric: share} | {one.metric: one.share for one in _parts(more)}
        value = weighed({name: shares[name] for name in names}, self._metrics)
        return Verdict(metric, share, key, more, self._names.setdefault(names, names), value)


def _parts(verdict: Verdict | None) -> list[Verdict]:
    found = []
    while verdict is not None:
        found.append(verdict)
        verdict = verdict.more
    return found
