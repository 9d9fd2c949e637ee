from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.library import apply
from tfgrpo.trial import FEWEST, LOOK, Trial, changes, surplus, without
from tfgrpo.types import Experience, Library, Operation

BEFORE = Library((Experience("e1", "One."), Experience("e2", "Two.")), 3)
AFTER = Library((Experience("e1", "One, better."), Experience("e3", "Three."), Experience("e4", "Four.")), 5)


def tried(effects: dict[str, float], *, tasks: int = 200, noise: float = 0.3, confidence: float = 0.8) -> Trial:
    """A trial of AFTER in which each change moves a task's reward by its effect."""
    rng = random.Random(5)  # noqa: S311 - a test
    trial = Trial(BEFORE, enough=tasks, confidence=confidence)
    absent = trial.draw(AFTER, tasks, 1)
    extra = [sum(effect for id_, effect in effects.items() if id_ not in ids) + rng.gauss(0, noise) for ids in absent]
    mean = sum(extra) / tasks
    return trial.observed(AFTER, absent, [one - mean for one in extra])


def test_changes_are_entries_made_reworded_and_taken_away() -> None:
    found = [(one.id, one.operation.operation) for one in changes(BEFORE, AFTER)]
    assert found == [("e1", "update"), ("e2", "delete"), ("e3", "add"), ("e4", "add")]


def test_each_change_is_absent_for_half_of_the_tasks_and_the_draw_repeats() -> None:
    trial = Trial(BEFORE, enough=20, confidence=0.8)
    absent = trial.draw(AFTER, 20, 7)
    assert [sum(id_ in ids for ids in absent) for id_ in ("e1", "e2", "e3", "e4")] == [10] * 4
    assert absent == trial.draw(AFTER, 20, 7) != trial.draw(AFTER, 20, 8)


def test_only_the_change_that_does_harm_is_found() -> None:
    found = tried({"e3": -0.3, "e4": 0.3}).findings(AFTER)
    assert [(one.change.id, one.harms) for one in found if one.change.id in ("e3", "e4")] == [
        ("e3", True),
        ("e4", False),
    ]
    assert {one.change.id: one.effect for one in found}["e3"] == pytest.approx(-0.3, abs=0.1)


def test_a_harm_is_told_with_its_numbers() -> None:
    (told,) = [str(one) for one in tried({"e3": -0.3}, noise=0.01).findings(AFTER) if one.change.id == "e3"]
    assert told.startswith(("tasks earned 0.29", "tasks earned 0.30"))
    assert told.endswith("100 tasks with, 100 without)")


def test_what_changes_nothing_is_seldom_taken_for_harm() -> None:
    rng = random.Random(3)  # noqa: S311 - a test
    wrong = 0
    for seed in range(200):
        trial = Trial(BEFORE, enough=100, confidence=0.8)
        absent = trial.draw(AFTER, 100, seed)
        trial = trial.observed(AFTER, absent, [rng.gauss(0, 0.3) for _ in absent])
        wrong += sum(one.harms for one in trial.findings(AFTER))
    assert 0.15 < wrong / 800 < 0.25


def test_too_few_tasks_show_nothing() -> None:
    few = tried({"e3": -1.0}, tasks=2 * FEWEST - 2, noise=0.01)
    assert not [one for one in few.findings(AFTER, closing=True) if one.harms]


def test_a_first_look_waits_for_enough_tasks_unless_the_trial_closes() -> None:
    trial = Trial(BEFORE, enough=100, confidence=0.8)
    absent = trial.draw(AFTER, LOOK - 2, 1)
    trial = trial.observed(AFTER, absent, [0.1 if "e3" in ids else -0.1 for ids in absent])
    harmful = [
        [one.change.id for one in trial.findings(AFTER, closing=closing) if one.harms] for closing in (False, True)
    ]
    assert (harmful[0], "e3" in harmful[1]) == ([], True)


def test_what_was_seen_enough_without_harm_is_trusted_and_no_longer_on_trial() -> None:
    trial = tried({"e3": -0.3})
    harmful = [one.change for one in trial.findings(AFTER) if one.change.id == "e3"]
    left = without(AFTER, harmful)
    assert changes(trial.settled(AFTER, harmful).trusted, left) == []


def test_another_wording_is_another_change() -> None:
    reworded = apply(AFTER, [Operation("update", ("e3",), "Three, anew.")]).library
    found = {one.change.id: one for one in tried({"e3": -0.3}).findings(reworded)}
    assert (found["e3"].tasks_with, found["e4"].tasks_with) == (0, 100)


def test_undoing_every_change_gives_the_entries_of_before() -> None:
    assert set(without(AFTER, changes(BEFORE, AFTER)).experiences) == set(BEFORE.experiences)


def test_an_id_is_not_given_again_after_its_entry_was_taken_back() -> None:
    left = without(AFTER, changes(BEFORE, AFTER))
    assert apply(left, [Operation("add", (), "New.")]).library.experiences[-1].id == "e5"


@given(st.lists(st.tuples(st.floats(0, 1), st.one_of(st.none(), st.floats(0, 1))), min_size=1, max_size=30))
def test_what_tasks_earn_beyond_expectation_sums_to_nothing(pairs: list[tuple[float, float | None]]) -> None:
    found = surplus([now for now, _ in pairs], [before for _, before in pairs])
    assert sum(found) == pytest.approx(0, abs=1e-6)


def test_what_a_task_earned_before_explains_what_it_earns_now() -> None:
    assert surplus([0.2, 0.4, 0.9], [0.1, 0.3, 0.8]) == pytest.approx([0, 0, 0])
