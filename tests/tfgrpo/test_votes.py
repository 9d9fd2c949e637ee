from __future__ import annotations

import random

from tfgrpo.consolidate import replacements
from tfgrpo.library import apply
from tfgrpo.trial import Trial
from tfgrpo.types import Experience, Library, Operation
from tfgrpo.votes import Votes, count

BEFORE = Library()
MADE = Library((Experience("e1", "One."), Experience("e2", "Two."), Experience("e3", "Three.")), 4)


def judged(
    votes: dict[str, Votes], effects: dict[str, float], *, tasks: int = 400, closing: bool = False
) -> dict[str, str]:
    """What becomes of the entries of MADE after as many tasks, by id."""
    rng = random.Random(2)  # noqa: S311 - a test
    trial = Trial(BEFORE, enough=10 * tasks, confidence=0.8, support=0.05)
    absent = trial.draw(MADE, tasks, 1)
    trial = trial.observed(MADE, absent, [_earned(effects, ids) + rng.gauss(0, 0.3) for ids in absent]).counted(votes)
    found = trial.findings(MADE, closing=closing)
    return {one.change.id: "harmful" if one.harms else "not confirmed" if one.undone else "kept" for one in found}


def _earned(effects: dict[str, float], absent: frozenset[str]) -> float:
    return sum(-effect / 2 if id_ in absent else effect / 2 for id_, effect in effects.items())


def test_a_lesson_is_a_vote_on_the_entries_it_names() -> None:
    ballots = [
        [Operation("keep", ("e1",)), Operation("add", (), "New.")],
        [Operation("update", ("e1",), "One, anew."), Operation("delete", ("e2",))],
        [],
    ]
    assert count(ballots, MADE) == {"e1": Votes(2, 0, 3), "e2": Votes(0, 1, 3), "e3": Votes(0, 0, 3)}


def test_what_lessons_confirm_stays_though_tasks_show_nothing() -> None:
    assert judged({"e1": Votes(12, 1, 100)}, {})["e1"] == "kept"


def test_what_few_lessons_speak_of_is_taken_back_and_is_no_harm() -> None:
    assert judged({"e1": Votes(4, 0, 100)}, {})["e1"] == "not confirmed"


def test_what_lessons_dispute_is_decided_by_what_tasks_earn() -> None:
    disputed = Votes(10, 9, 100)
    became = judged({"e1": disputed, "e2": disputed}, {"e1": 0.15, "e2": -0.15})
    assert (became["e1"], became["e2"]) == ("kept", "harmful")


def test_what_lessons_contradict_is_taken_back_though_tasks_show_nothing() -> None:
    assert judged({"e1": Votes(1, 11, 100)}, {})["e1"] == "harmful"


def trial_with(**votes: Votes) -> Trial:
    return Trial(BEFORE, enough=1000, confidence=0.8, support=0.05).counted(votes)


def test_votes_that_contradict_each_other_as_coins_would_are_not_believed() -> None:
    trial = trial_with(e1=Votes(10, 9, 50), e2=Votes(8, 10, 50), e3=Votes(7, 6, 50))
    assert trial.trust == 0.0
    assert trial.contested(MADE) == {"e1", "e2", "e3"}


def test_votes_that_are_at_one_count_in_full_and_edits_may_delete() -> None:
    trial = trial_with(e1=Votes(30, 1, 50), e2=Votes(2, 14, 50), e3=Votes(3, 2, 50))
    assert (trial.trust, trial.contested(MADE)) == (1.0, frozenset())


def test_few_votes_are_believed_for_nobody_can_say_otherwise() -> None:
    assert trial_with(e1=Votes(5, 5, 20), e2=Votes(6, 6, 20)).trust == 1.0


def test_votes_a_little_beyond_chance_weigh_that_share() -> None:
    assert 0 < trial_with(e1=Votes(14, 6, 50), e2=Votes(10, 9, 50), e3=Votes(9, 5, 50)).trust < 0.5


def test_what_votes_say_that_are_not_believed_does_not_count() -> None:
    coins = Votes(50, 50, 200)
    assert judged({"e1": Votes(8, 4, 200), "e2": coins, "e3": coins}, {"e1": -0.15})["e1"] == "harmful"


def test_an_entry_that_was_there_before_the_run_is_not_contested() -> None:
    trial = Trial(MADE, enough=1000, confidence=0.8, support=0.05).counted({"e1": Votes(25, 25, 60)})
    assert (trial.trust, trial.contested(MADE)) == (0.0, frozenset())


def test_without_a_share_of_support_votes_count_for_nothing() -> None:
    trial = Trial(BEFORE, enough=1000, confidence=0.8)
    trial = trial.observed(MADE, trial.draw(MADE, 100, 1), [0.0] * 100).counted({"e1": Votes(0, 50, 50)})
    assert not [one for one in trial.findings(MADE) if one.undone]


def test_an_update_that_more_wanted_as_a_deletion_is_another_entry() -> None:
    update = Operation("update", ("e1",), "Not one.")
    against = [Operation("delete", ("e1",)), Operation("delete", ("e1",)), Operation("update", ("e1",), "One!")]
    library = apply(MADE, replacements([update], against)).library
    assert [(one.id, one.text) for one in library.experiences] == [("e2", "Two."), ("e3", "Three."), ("e4", "Not one.")]


def test_an_update_that_was_asked_for_keeps_its_entry() -> None:
    update = Operation("update", ("e1",), "One, anew.")
    assert replacements([update], [update, Operation("delete", ("e1",))]) == [update]


def test_too_few_votes_are_no_reason_before_other_groups_had_their_say() -> None:
    assert (judged({"e1": Votes(2, 0, 30)}, {})["e1"], judged({"e1": Votes(2, 0, 90)}, {})["e1"]) == (
        "kept",
        "not confirmed",
    )


def test_at_the_end_an_entry_must_have_something_to_show() -> None:
    disputed = Votes(10, 9, 100)
    assert judged({"e1": disputed}, {"e1": 0.02})["e1"] == "kept"
    assert judged({"e1": disputed}, {"e1": 0.02}, closing=True)["e1"] == "not confirmed"
