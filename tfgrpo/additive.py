"""Effects that add up, by least squares with a little ridge (Hoerl and Kennard 1970). Numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

Matrix = list[list[float]]

_SINGULAR: Final = 1e-9


class Singular(ArithmeticError):  # noqa: N818 - says what the equations are
    """The equations leave something open."""


def fit(rows: Sequence[Sequence[float]], outcomes: Sequence[float], *, ridge: float) -> list[tuple[float, float]]:
    """Return an effect with its standard error for each column of `rows`, in order.

    Outcomes are taken to be centred. `ridge` > 0 is how many rows' worth of belief there is that an effect is 0; it
    keeps columns that cannot be told apart from breaking the fit. No more columns than rows less one is wise.
    """
    width = len(rows[0])
    cross = [[sum(row[i] * row[j] for row in rows) for j in range(width)] for i in range(width)]
    for at in range(width):
        cross[at][at] += ridge
    inverse = inverted(cross)
    moments = [sum(row[i] * y for row, y in zip(rows, outcomes, strict=True)) for i in range(width)]
    effects = [sum(a * b for a, b in zip(line, moments, strict=True)) for line in inverse]
    left = [y - sum(e * x for e, x in zip(effects, row, strict=True)) for row, y in zip(rows, outcomes, strict=True)]
    noise = sum(one * one for one in left) / max(1, len(rows) - width - 1)
    return [(effect, sqrt(noise * inverse[at][at])) for at, effect in enumerate(effects)]


def inverted(matrix: Matrix) -> Matrix:
    """Return the inverse of a symmetric positive definite matrix; see `solved`."""
    size = len(matrix)
    return solved(matrix, [[float(i == j) for j in range(size)] for i in range(size)])


def solved(matrix: Matrix, right: Matrix) -> Matrix:
    """Return x of `matrix` x = `right`, column for column, for a symmetric positive semidefinite matrix.

    By Gauss and Jordan; such a matrix needs no search for pivots. Rows are dozens: no library is needed for that.

    Raises:
        Singular: there is no one answer.
    """
    size = len(matrix)
    work = [[*row, *values] for row, values in zip(matrix, right, strict=True)]
    for at in range(size):
        pivot = work[at][at]
        if pivot < _SINGULAR:
            raise Singular
        work[at] = [value / pivot for value in work[at]]
        for other in range(size):
            if other != at and (factor := work[other][at]):
                work[other] = [a - factor * b for a, b in zip(work[other], work[at], strict=True)]
    return [row[size:] for row in work]
