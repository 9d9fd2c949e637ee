"""What labels of one target say: the same words are the same object, and what cannot be told is unclear."""

from __future__ import annotations

import pytest

from tfgrpo.verdicts import MANY, UNCLEAR, Verdicts
from tfgrpo.weighing import Metric

METRICS = {"reward": Metric(), "tone": Metric(3.0)}


@pytest.fixture
def verdicts() -> Verdicts:
    return Verdicts(METRICS)


def test_what_was_said_before_is_the_same_object(verdicts: Verdicts) -> None:
    one, other = verdicts.alone("reward", 1.0), verdicts.alone("tone", 0.0)
    assert verdicts.alone("reward", 1.0) is one
    assert verdicts.joined(one, other) is verdicts.joined(one, other)


def test_only_so_many_are_kept(verdicts: Verdicts) -> None:
    for number in range(MANY + 5):
        verdicts.alone("reward", number / MANY)
    assert len(verdicts.shared) == MANY


def test_labels_of_several_metrics_come_to_their_weighted_mean(verdicts: Verdicts) -> None:
    both = verdicts.joined(verdicts.alone("reward", 1.0), verdicts.alone("tone", 0.0))
    assert (both.value, both.names, both.reward().shares) == (0.25, ("reward", "tone"), {"reward": 1.0, "tone": 0.0})


def test_two_labels_of_one_metric_are_unclear(verdicts: Verdicts) -> None:
    one = verdicts.alone("reward", 1.0)
    assert verdicts.joined(one, one) is UNCLEAR
    assert verdicts.joined(verdicts.joined(one, verdicts.alone("tone", 1.0)), one) is UNCLEAR
    assert verdicts.joined(UNCLEAR, verdicts.alone("tone", 1.0)) is UNCLEAR


def test_labels_of_a_key_are_left_out(verdicts: Verdicts) -> None:
    mine, other = verdicts.alone("reward", 1.0, "mine"), verdicts.alone("tone", 1.0, "other")
    left = verdicts.of_others(verdicts.joined(mine, other), "mine")
    assert left is not None
    assert left.names == ("tone",)
    assert verdicts.of_others(mine, "mine") is None
