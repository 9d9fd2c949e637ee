"""What lessons say of the entries of a library: each lesson is a vote for, against or on none of them.

A lesson is held against the library by the optimizer (stage `propose`): `keep` and `update` confirm the entries they
name, `delete` contradicts them. Chance confirms an entry as often as it contradicts it, so it is the surplus that
counts. Pure: it knows no model and no rollout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from tfgrpo.types import Library, Operation


@dataclass(frozen=True, slots=True)
class Votes:
    """Lessons that confirmed and contradicted one entry, out of those of `groups` telling groups."""

    confirmed: int = 0
    contradicted: int = 0
    groups: int = 0

    @property
    def cast(self) -> int:
        """How many lessons speak of the entry."""
        return self.confirmed + self.contradicted

    @property
    def surplus(self) -> float:
        """Confirmations beyond contradictions in standard errors, as a sign test has them; one vote is held back."""
        return (self.confirmed - self.contradicted) / sqrt(self.cast + 1)

    def __add__(self, other: Votes) -> Votes:
        return Votes(
            self.confirmed + other.confirmed, self.contradicted + other.contradicted, self.groups + other.groups
        )

    def __str__(self) -> str:
        return (
            f"lessons of {self.groups} groups confirm it {self.confirmed} times and contradict it {self.contradicted}"
        )


def count(ballots: Sequence[Iterable[Operation]], library: Library) -> dict[str, Votes]:
    """Return the votes on each entry of `library`, from the operations that each group's lessons call for."""
    confirmed: Counter[str] = Counter()
    contradicted: Counter[str] = Counter()
    for ballot in ballots:
        for operation in ballot:
            if operation.operation in ("keep", "update"):
                confirmed.update(operation.ids)
            elif operation.operation == "delete":
                contradicted.update(operation.ids)
    return {entry.id: Votes(confirmed[entry.id], contradicted[entry.id], len(ballots)) for entry in library.experiences}
