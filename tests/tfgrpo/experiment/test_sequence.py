from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.experiment.sequence import RATES, Sequence

SCORES = st.lists(st.floats(-3, 3), min_size=1, max_size=60)


def of(scores: list[float], reach: float = 3.0) -> Sequence:
    made = Sequence(reach)
    for score in scores:
        made.add(score, low=-reach, high=reach)
    return made


def test_without_scores_nothing_is_known() -> None:
    empty = Sequence(1.0)
    assert empty.mean is None
    assert empty.interval(0.05) == (-math.inf, math.inf)
    assert not empty.differs(0.5)


@given(SCORES)
def test_the_mean_lies_in_its_interval(scores: list[float]) -> None:
    made = of(scores)
    low, high = made.interval(0.05)
    assert made.mean is not None
    assert low <= made.mean <= high


@given(SCORES, st.floats(-1, 1))
def test_an_average_is_above_what_its_interval_is_above(scores: list[float], than: float) -> None:
    made = of(scores)
    low, high = made.interval(0.1)
    slack = 1e-6
    if low > than + slack:
        assert made.above(0.05, than)
    if low < than - slack:
        assert not made.above(0.05, than)
    assert made.below(0.05, than) or high >= than - slack


@given(SCORES)
def test_what_is_true_of_scores_is_true_of_their_opposites(scores: list[float]) -> None:
    low, high = of(scores).interval(0.05)
    mirrored = of([-score for score in scores]).interval(0.05)
    assert math.isclose(mirrored[0], -high)
    assert math.isclose(mirrored[1], -low)


def test_a_known_bound_on_one_side_makes_the_other_side_sharper() -> None:
    plain, known = Sequence(1.0), Sequence(1.0)
    for _ in range(40):
        plain.add(0.5, low=-1, high=1)
        known.add(0.5, low=-0.2, high=1)
    assert known.interval(0.05)[0] > plain.interval(0.05)[0]
    assert known.interval(0.05)[1] == plain.interval(0.05)[1]


def test_the_evidence_is_the_mixture_of_the_theorem() -> None:
    made = Sequence(2.0)
    for _ in range(20):
        made.add(1.0, low=-2, high=2)
    # In parts of the reach: the sum is 10, that of the squares 5.
    each = [math.exp(10 * rate - 5 * (-math.log(1 - rate) - rate)) for rate in RATES]
    level = len(each) / sum(each)
    assert made.above(level * 1.001)
    assert not made.above(level * 0.999)


def test_an_average_that_drifts_is_covered_at_every_look_of_nearly_every_run() -> None:
    # Scores as a candidate's of share 0.1 make them: rarely large, else small. The average of their means drifts.
    rng = random.Random(5)  # noqa: S311 - a simulation
    missed = 0
    for _ in range(200):
        made, expected, covered = Sequence(10.0), 0.0, True
        for number in range(1, 600):
            effect = 0.3 * math.sin(number / 100)
            expected += effect
            chosen, good = rng.random() < 0.1, rng.random() < 0.5 + effect
            made.add((10 if chosen else -10 / 9) * (good - 0.5) if chosen else 0.0, low=-5, high=5)
            if number % 20 == 0 and covered:
                low, high = made.interval(0.05)
                covered = low <= expected / number <= high
        missed += not covered
    assert missed <= 10


def test_a_steady_effect_is_seen() -> None:
    rng = random.Random(7)  # noqa: S311 - a simulation
    made = Sequence(1.0)
    for _ in range(2000):
        made.add(float(rng.random() < 0.6) - 0.5, low=-0.5, high=0.5)
    assert made.above(0.01)
    assert not made.below(0.5)
