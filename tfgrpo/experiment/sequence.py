"""Evidence about an average that stays valid however often one looks, and when one stops because of it.

The empirical-Bernstein confidence sequence of Howard, Ramdas, McAuliffe and Sekhon (2021), "Time-uniform,
nonparametric, nonasymptotic confidence sequences", Annals of Statistics 49(2), theorem 4. For scores z_i >= -c_i whose
means given the past are t_i, with c_i known before z_i, each exp(g * sum(z_i - t_i) - sum(psi(g, c_i) * z_i ** 2)) with
psi(g, c) = (-log(1 - c * g) - c * g) / c ** 2 and 0 <= g < 1 / c is a supermartingale (Fan, Grama and Liu 2015,
"Exponential inequalities for martingales with applications", proposition 4.1, with 0 as the prediction). So is a
mixture over several g, and by Ville's inequality it passes 1 / a with probability a at most, ever. Nothing is
asymptotic, and the means may drift: what is covered is their average.
"""

from __future__ import annotations

from math import ceil, exp, inf, log, log1p
from typing import Final

RATES: Final = (0.4, 0.2, 0.1, 0.05, 0.025)
"""The g of the mixture, for scores up to 1. Each is sharpest at one amount of evidence: where sum(z ** 2) is about
8 / g ** 2, which is from 50 to 13,000; between two of them little is lost."""

STEPS: Final = 10
"""A score's bound c is rounded up to one of so many steps: the squares are summed by it."""

_LOG_RATES: Final = log(len(RATES))


def _cost(rate: float, bound: float) -> float:
    return (-log1p(-bound * rate) - bound * rate) / bound**2


_COSTS: Final = tuple(tuple(_cost(rate, step / STEPS) for step in range(1, STEPS + 1)) for rate in RATES)


class Sequence:
    """The running sum of scores of which each lies in [-reach, reach].

    They come in an order that does not depend on them, and the mean of each is meant given those before it.
    """

    __slots__ = ("_falling", "_rising", "_squares", "_sum", "count", "reach")

    def __init__(self, reach: float) -> None:
        self.reach = reach
        self.count = 0
        self._sum = 0.0
        self._squares = 0.0
        self._rising: dict[int, float] = {}
        self._falling: dict[int, float] = {}

    def add(self, score: float, *, low: float, high: float) -> None:
        """Count one more score. It was known before that it would lie in [low, high], which holds 0."""
        self.count += 1
        if score:
            scaled = score / self.reach
            square = scaled * scaled
            self._sum += scaled
            self._squares += square
            step = _step(-low / self.reach)
            self._rising[step] = self._rising.get(step, 0.0) + square
            step = _step(high / self.reach)
            self._falling[step] = self._falling.get(step, 0.0) + square

    @property
    def mean(self) -> float | None:
        """The mean of the scores; None without any."""
        return self._sum * self.reach / self.count if self.count else None

    def above(self, alpha: float, than: float = 0.0) -> bool:
        """Say whether the average is above `than`: wrongly so at any look with probability `alpha` at most."""
        return self._passes(self._sum - self.count * than / self.reach, self._rising, alpha)

    def below(self, alpha: float, than: float = 0.0) -> bool:
        """Say whether the average is below `than`: wrongly so at any look with probability `alpha` at most."""
        return self._passes(self.count * than / self.reach - self._sum, self._falling, alpha)

    def differs(self, alpha: float) -> bool:
        """Say whether the average is not 0: wrongly so at any look with probability `alpha` at most."""
        return self.above(alpha / 2) or self.below(alpha / 2)

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the bounds between which the average lies: not so at any look with probability `alpha` at most."""
        if not self.count:
            return -inf, inf
        low = self._sum - _margin(self._rising, alpha / 2)
        high = self._sum + _margin(self._falling, alpha / 2)
        return self.reach * low / self.count, self.reach * high / self.count

    def _passes(self, total: float, squares: dict[int, float], alpha: float) -> bool:
        bar = log(1 / alpha)
        # No g does better than the bound of a normal variable: most looks end here.
        if total <= 0 or total * total <= 2 * bar * self._squares:
            return False
        return _evidence(total, _costs(squares)) >= bar


def _step(bound: float) -> int:
    return min(STEPS, max(1, ceil(bound * STEPS))) - 1


def _costs(squares: dict[int, float]) -> list[float]:
    return [sum(costs[step] * square for step, square in squares.items()) for costs in _COSTS]


def _evidence(total: float, costs: list[float]) -> float:
    """The logarithm of the mixture."""
    exponents = [rate * total - cost for rate, cost in zip(RATES, costs, strict=True)]
    largest = max(exponents)
    return largest + log(sum(exp(exponent - largest) for exponent in exponents)) - _LOG_RATES


def _margin(squares: dict[int, float], alpha: float) -> float:
    """The sum at which the evidence passes: it rises with the sum, so halving finds it."""
    bar, costs = log(1 / alpha), _costs(squares)
    low, high = 0.0, min((bar + _LOG_RATES + cost) / rate for rate, cost in zip(RATES, costs, strict=True))
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if _evidence(middle, costs) >= bar else (middle, high)
    return high
