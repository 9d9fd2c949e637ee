"""How much of a library one step may take away."""

from __future__ import annotations

from tfgrpo import deletions
from tfgrpo import library as libraries
from tfgrpo.library import Limits
from tfgrpo.types import Operation

FOUR = libraries.from_texts(["One.", "Two.", "Three.", "Four."])
ONE = libraries.from_texts(["One."])
BOUND = Limits(edits=10)


def gone(id_: str, *sources: str) -> Operation:
    return Operation("delete", (id_,), sources=sources)


def test_of_an_edit_that_deletes_everything_half_is_made_the_best_supported() -> None:
    edit = deletions.apply(FOUR, [gone("e1"), gone("e2", "a", "b"), gone("e3", "a"), gone("e4")], BOUND)
    assert [entry.id for entry in edit.library.experiences] == ["e1", "e4"]
    assert ["may delete 2 of 4" in one.reason for one in edit.refused] == [True, True]


def test_the_last_entry_goes_only_where_another_comes() -> None:
    assert deletions.apply(ONE, [gone("e1")], BOUND).refused[0].reason == deletions.LAST
    changed = deletions.apply(ONE, [gone("e1"), Operation("add", (), "Two.")], BOUND)
    assert [entry.text for entry in changed.library.experiences] == ["Two."]


def test_the_last_entry_stays_where_what_was_to_come_is_refused() -> None:
    edit = deletions.apply(ONE, [gone("e1"), Operation("add", (), "Ask https://a.example/x.")], BOUND)
    assert edit.library == ONE
    assert len(edit.refused) == 2


def test_without_a_bound_on_edits_there_is_none_on_deletions() -> None:
    assert not deletions.apply(FOUR, [gone(f"e{n}") for n in range(1, 5)], Limits()).library.experiences
