from __future__ import annotations

import random
from statistics import fmean

import pytest

from tfgrpo.planning import Variance, observed, plan

KNOWN = Variance(0.01, 0.2, "known")


def test_the_samples_needed_are_enough_for_the_tasks_there_are() -> None:
    found = plan(0.1, samples=1, available=100, level=0.05, variance=KNOWN)
    assert found.samples_needed is not None
    again = plan(0.1, samples=found.samples_needed, available=100, level=0.05, variance=KNOWN)
    fewer = plan(0.1, samples=found.samples_needed - 1, available=100, level=0.05, variance=KNOWN)
    assert again.tasks <= 100 < fewer.tasks


def test_no_number_of_samples_is_enough_where_effects_vary_too_much_from_task_to_task() -> None:
    found = plan(0.02, samples=32, available=30, level=0.05, variance=KNOWN)
    assert (found.samples_needed, "no k is enough" in str(found)) == (None, True)


def test_too_few_tasks_can_show_nothing_whatever_the_effect() -> None:
    assert "5 tasks can show nothing" in str(plan(0.9, samples=32, available=5, level=0.05))


def test_the_parts_of_the_variance_are_found_again() -> None:
    rng = random.Random(3)  # noqa: S311 - a fixed draw, no secret
    ours, theirs = [], []
    for _ in range(2000):
        effect = rng.gauss(0, 0.1)
        ours.append([rng.gauss(effect, 0.3) for _ in range(4)])
        theirs.append([rng.gauss(0, 0.3) for _ in range(4)])
    found = observed(ours, theirs)
    assert found is not None
    assert found.between == pytest.approx(0.01, abs=0.004)
    assert found.within == pytest.approx(0.09, rel=0.05)


def test_the_planned_number_of_tasks_shows_the_effect_with_about_the_promised_power() -> None:
    rng = random.Random(5)  # noqa: S311 - a fixed draw, no secret
    found = plan(0.3, samples=4, available=15, level=0.05, variance=Variance(0.04, 0.2, "known"))
    noise = found.variance.of_difference(4) ** 0.5
    shown = 0
    for _ in range(400):
        differences = [rng.gauss(0.3, noise) for _ in range(found.tasks)]
        error = (sum((one - fmean(differences)) ** 2 for one in differences) / (found.tasks - 1) / found.tasks) ** 0.5
        shown += fmean(differences) / error > 1.96
    assert shown > 0.74 * 400


def test_one_sample_of_a_task_says_nothing_about_variance() -> None:
    assert observed([[1.0], [0.0]], [[0.0], [0.0]]) is None
