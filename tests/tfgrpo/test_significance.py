from __future__ import annotations

import itertools
import random
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfgrpo.significance import (
    compare,
    fewest,
    level,
    pass_at,
    share_interval,
    sign_flip_interval,
    smallest_detectable,
)

DIFFERENCES = st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=6, max_size=10)


def p_value(differences: list[float], null: float) -> float:
    """The one-sided exact sign-flip p-value, by brute force."""
    shifted = [round(value - null, 9) for value in differences]
    observed = sum(shifted)
    flips = [
        sum(s * v for s, v in zip(signs, shifted, strict=True))
        for signs in itertools.product((1, -1), repeat=len(shifted))
    ]
    return min(
        sum(total >= observed - 1e-9 for total in flips) / len(flips),
        sum(total <= observed + 1e-9 for total in flips) / len(flips),
    )


@settings(max_examples=40, deadline=None)
@given(DIFFERENCES)
def test_the_interval_holds_what_the_test_does_not_reject(differences: list[float]) -> None:
    low, high = sign_flip_interval(differences)
    middle = (low + high) / 2
    assert p_value(differences, middle) > 0.025 or low == high
    assert p_value(differences, low - 1e-6) <= 0.025
    assert p_value(differences, high + 1e-6) <= 0.025


@given(DIFFERENCES)
def test_swapping_the_libraries_mirrors_the_interval(differences: list[float]) -> None:
    low, high = sign_flip_interval(differences)
    assert sign_flip_interval([-value for value in differences]) == pytest.approx((-high, -low))


def test_five_tasks_can_show_nothing() -> None:
    found = compare([1.0] * 5, samples=8)
    assert (found.verdict, found.interval, found.smallest_detectable) == ("no effect shown", (-1.0, 1.0), 1.0)


def test_six_tasks_that_all_improve_help() -> None:
    assert compare([0.5] * 6, samples=8).verdict == "helps"


def test_tasks_that_all_get_worse_hurt() -> None:
    assert compare([-0.5] * 8, samples=8).verdict == "hurts"


def test_no_difference_is_no_effect_shown_and_still_says_what_could_have_been_seen() -> None:
    found = compare([0.0] * 60, samples=8)
    assert (found.verdict, found.interval, found.smallest_detectable > 0) == ("no effect shown", (0.0, 0.0), True)


def test_random_subsets_find_nearly_the_interval_that_all_subsets_find() -> None:
    rng = random.Random(5)  # noqa: S311 - a fixed draw, no secret
    differences = [rng.choice((-0.5, 0.0, 0.25, 0.5)) for _ in range(19)]
    exact = sign_flip_interval(differences)
    # A twentieth task whose difference is the mean of the others moves the interval by less than a twentieth.
    assert sign_flip_interval([*differences, fmean(differences)]) == pytest.approx(exact, abs=0.05)


def test_many_tasks_are_compared_the_same_for_the_same_seed() -> None:
    differences = [number % 7 / 7 - 0.3 for number in range(40)]
    assert sign_flip_interval(differences, seed=3) == sign_flip_interval(differences, seed=3)


def test_the_interval_of_many_tasks_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = random.Random(7)  # noqa: S311 - a fixed draw, no secret
    covered = 0
    for trial in range(60):
        sample = [fmean(rng.choice((-1, 0, 0, 1, 1)) for _ in range(4)) for _ in range(30)]
        low, high = sign_flip_interval(sample, seed=trial)
        covered += low <= 0.2 <= high
    # 95 percent of 60, with five standard errors of room.
    assert covered >= 49


@pytest.mark.parametrize("tasks", [20, 25])
def test_tasks_that_are_mostly_all_right_or_all_wrong_do_not_make_the_test_too_sure(tasks: int) -> None:
    rng = random.Random(13)  # noqa: S311 - a fixed draw, no secret
    said = []
    for trial in range(100):
        chances = [rng.betavariate(0.3, 0.3) for _ in range(tasks)]
        sides = [[fmean(rng.random() < chance for _ in range(8)) for chance in chances] for _ in range(2)]
        said.append(compare([a - b for a, b in zip(*sides, strict=True)], samples=8, seed=trial).verdict)
    # 5 percent of 100, with four standard errors of room; the bootstrap that stood here said it 9 times in 100.
    assert sum(verdict != "no effect shown" for verdict in said) <= 13


def test_without_an_effect_helps_and_hurts_are_rarely_said() -> None:
    rng = random.Random(11)  # noqa: S311 - a fixed draw, no secret
    said = [compare([rng.choice((-0.5, 0.0, 0.5)) for _ in range(12)], samples=2).verdict for _ in range(100)]
    assert sum(verdict != "no effect shown" for verdict in said) <= 16


def test_more_tasks_show_smaller_effects() -> None:
    differences = [0.5, -0.5, 0.0, 0.25]
    assert smallest_detectable(differences * 40, 8) < smallest_detectable(differences * 4, 8)


def test_pass_at_k_is_the_share_of_draws_of_k_samples_that_hold_a_full_reward() -> None:
    rewards = [1.0, 0.0, 0.5, 0.0, 1.0]
    draws = [any(one == 1 for one in chosen) for chosen in itertools.combinations(rewards, 2)]
    assert pass_at(rewards, 2) == pytest.approx(fmean(draws))


def test_pass_at_all_samples_asks_whether_one_passed() -> None:
    assert (pass_at([0.0, 0.9, 1.0], 3), pass_at([0.0, 0.9, 0.0], 3)) == (1.0, 0.0)


def test_the_levels_of_all_uses_come_to_no_more_than_one_level() -> None:
    assert 0.0499 < sum(level(use) for use in range(1, 10_000)) < 0.05


@pytest.mark.parametrize("use", [1, 2, 5])
def test_so_few_tasks_can_show_something_and_one_less_cannot(use: int) -> None:
    few = fewest(level(use))
    said = [compare([1.0] * count, samples=8, alpha=level(use)).verdict for count in (few - 1, few)]
    assert said == ["no effect shown", "helps"]


def test_a_mean_of_one_does_not_pass_for_certainty() -> None:
    low, high = share_interval(1.0, 20)
    assert (0.8 < low < 0.9, high) == (True, 1.0)


def test_the_promised_smallest_effect_is_seen_about_as_often_as_promised() -> None:
    rng = random.Random(17)  # noqa: S311 - a fixed draw, no secret
    noise = [0.2 * step for step in (-1.3, -0.7, 0.0, 0.7, 1.3)] * 3
    promised, spread = smallest_detectable(noise, 8), stdev(noise)
    seen = sum(compare([rng.gauss(promised, spread) for _ in noise], samples=8).verdict == "helps" for _ in range(100))
    # 80 of 100, with four standard errors of room.
    assert 64 <= seen <= 96
