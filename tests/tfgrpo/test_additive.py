from __future__ import annotations

import random

import pytest

from tfgrpo.additive import Singular, fit, inverted, solved


def test_effects_that_add_up_are_found_with_their_errors() -> None:
    rng = random.Random(1)  # noqa: S311 - a test
    rows = [[rng.choice((-0.5, 0.5)) for _ in range(3)] for _ in range(400)]
    outcomes = [0.3 * row[0] - 0.2 * row[2] + rng.gauss(0, 0.2) for row in rows]
    effects, errors = zip(*fit(rows, outcomes, ridge=0.5), strict=True)
    assert effects == pytest.approx((0.3, 0.0, -0.2), abs=0.06)
    assert errors == pytest.approx((0.02, 0.02, 0.02), abs=0.004)


def test_columns_that_cannot_be_told_apart_share_the_effect() -> None:
    rows = [[half, half] for half in (0.5, -0.5)] * 20
    (left, _), (right, _) = fit(rows, [row[0] for row in rows], ridge=0.5)
    assert left == pytest.approx(right)
    assert left == pytest.approx(0.5, abs=0.05)


def test_an_inverse_undoes_its_matrix() -> None:
    matrix = [[4.0, 1.0], [1.0, 3.0]]
    back = inverted(inverted(matrix))
    assert [round(value, 9) for row in back for value in row] == [4.0, 1.0, 1.0, 3.0]


def test_equations_are_solved_or_leave_something_open() -> None:
    assert solved([[4.0, 2.0], [2.0, 3.0]], [[8.0], [8.0]]) == [[1.0], [2.0]]
    with pytest.raises(Singular):
        solved([[1.0, 1.0], [1.0, 1.0]], [[1.0], [1.0]])
