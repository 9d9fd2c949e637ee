"""What a run measured, by case and target, and what is read from it: medians, spreads, ratios. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

Values = dict[str, float]
"""What one measurement saw, by name. Times in milliseconds, but CPU a chunk in microseconds."""


@dataclass(frozen=True, slots=True)
class Middle:
    """The median of the rounds, with the least and the most."""

    value: float
    least: float
    most: float


@dataclass(slots=True)
class Results:
    """The rounds of a run, in the order they were measured, and the memory of each target's processes in MiB."""

    rounds: dict[str, dict[str, list[Values]]] = field(default_factory=dict)
    memory: dict[str, Values] = field(default_factory=dict)

    def add(self, case: str, target: str, values: Values) -> None:
        """Keep one measurement."""
        self.rounds.setdefault(case, {}).setdefault(target, []).append(values)

    def middle(self, case: str, target: str, name: str) -> Middle | None:
        """Return a value over the rounds; None when it was not measured."""
        seen = [one[name] for one in self.rounds.get(case, {}).get(target, ()) if name in one]
        return Middle(median(seen), min(seen), max(seen)) if seen else None

    def ratio(self, case: str, target: str, to: str, name: str) -> float | None:
        """Return how many times `to`'s value a target's is, by the medians."""
        mine, theirs = self.middle(case, target, name), self.middle(case, to, name)
        return mine.value / theirs.value if mine and theirs and theirs.value else None
