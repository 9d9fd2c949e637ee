"""Families as reasoning-gym has them: task `i` of seed `s` is made from `s + i`; each scores answers by itself."""

from __future__ import annotations

import random
import time
from fractions import Fraction
from typing import Any


class Sums:
    """A sound family, whose metadata JSON cannot carry; it gives a tenth for any number."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seed = size, seed

    def __getitem__(self, index: int) -> dict[str, Any]:
        number = self.seed + index
        return {"question": f"{number} + 1?", "answer": str(number + 1), "metadata": {"sum": Fraction(number + 1)}}

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        if answer is None or not answer.isdigit():
            return 0.0
        return 1.0 if int(answer) == entry["metadata"]["sum"] else 0.1


class Wrong(Sums):
    """Takes no right answer for right."""

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:  # noqa: ARG002 - the package's form
        return 0.5


class Odd(Sums):
    """Takes only odd answers for right."""

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:  # noqa: ARG002 - the package's form
        return float(int(answer or 0) % 2)


class Open(Sums):
    """Names no right answer."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**super().__getitem__(index), "answer": None}


class Few(Sums):
    """Has two tasks."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return super().__getitem__(index % 2)


class Endless(Sums):
    """Never has its second task ready."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        if index:
            time.sleep(3600)
        return super().__getitem__(index)


class Restless(Sums):
    """Makes another task each time it is asked."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**super().__getitem__(index), "question": str(time.monotonic_ns())}


class Shared(Sums):
    """Draws from the generator that all share."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**super().__getitem__(index), "question": str(random.random())}  # noqa: S311 - no secret


DATASETS: dict[str, tuple[type[Sums], None]] = {
    made.__name__.lower(): (made, None) for made in (Sums, Wrong, Odd, Open, Few, Endless, Restless, Shared)
}


def create_dataset(name: str, *, size: int, seed: int) -> Sums:
    return DATASETS[name][0](size, seed)
