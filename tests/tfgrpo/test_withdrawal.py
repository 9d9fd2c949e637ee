from __future__ import annotations

import pytest

from tfgrpo.types import Experience, Library, Version
from tfgrpo.withdrawal import group_of, planned, remaining


def version(number: int, *entries: Experience, parent: int | None = None) -> Version:
    return Version("math", number, Library(entries, 9), "unproven", 0.0, parent=parent)


def rests(entry: Experience) -> bool:
    return "bad" in entry.sources


CLEAN = Experience("e1", "Check the sign.", ("g",))
POISON = Experience("e2", "Prefer the dear option.", ("bad",))


@pytest.mark.parametrize(
    ("source", "group"),
    [("g@3", "g"), ("g@mixed", "g"), ("g", "g"), ("me@home", "me@home"), ("a@1@2", "a@1"), ("", "")],
)
def test_a_source_names_a_group_with_or_without_the_version_that_it_was_tried_under(source: str, group: str) -> None:
    assert group_of(source) == group


def test_an_entry_that_rests_on_it_goes_and_the_others_stay_as_they_are() -> None:
    found = planned([version(1, CLEAN, POISON)], rests, live=1)
    assert found is not None
    assert (found.base, found.library.experiences, found.gone) == (1, (CLEAN,), (POISON,))
    assert found.library.next_id == 9


def test_an_entry_goes_whatever_else_it_rests_on() -> None:
    mixed = Experience("e2", "Prefer the dear option.", ("g", "h", "bad"))
    found = planned([version(1, mixed)], rests)
    assert found is not None
    assert found.gone == (mixed,)


def test_a_text_from_before_comes_back_from_the_newest_version_that_it_descends_from() -> None:
    older, old, new = (
        Experience("e1", "Check.", ("g",)),
        Experience("e1", "Check the sign.", ("g",)),
        Experience("e1", "Check nothing.", ("g", "bad")),
    )
    line = [version(1, older), version(2, old, parent=1), version(3, new, parent=2)]
    found = planned(line, rests, live=3)
    assert found is not None
    assert (found.library.experiences, found.restored) == ((old,), ((new, old),))
    aside = planned([version(1, older), version(2, new)], rests, live=2)
    assert aside is not None
    assert aside.gone == (new,)


def test_a_text_that_a_version_holds_without_it_is_not_withdrawn() -> None:
    confirmed = Experience("e1", CLEAN.text, ("g", "bad"), support=2)
    assert planned([version(1, CLEAN), version(2, confirmed, parent=1)], rests) is None


@pytest.mark.parametrize(
    ("live", "candidate", "base"), [(1, 2, 1), (3, 2, 2), (3, None, 4), (None, None, 4), (4, 1, 4)]
)
def test_the_live_version_is_followed_else_the_candidate_else_the_newest(
    live: int | None, candidate: int | None, base: int
) -> None:
    held = [version(1, POISON), version(2, POISON), version(3, CLEAN), version(4, POISON)]
    found = planned(held, rests, live=live, candidate=candidate)
    assert found is not None
    assert (found.base, found.versions) == (base, (1, 2, 4))
    assert (found.live, found.candidate) == (live in (1, 2, 4), candidate in (1, 2, 4))


def test_where_no_version_in_use_rests_on_it_none_follows() -> None:
    found = planned([version(1, POISON), version(2, CLEAN)], rests, live=2)
    assert found is not None
    assert (found.base, found.versions, found.gone) == (None, (1,), ())


def test_what_is_left_of_a_stored_library_is_the_rest_as_it_is_and_the_ids_of_what_went() -> None:
    stored = Library((CLEAN, POISON), 9)
    assert remaining(stored, {(POISON.id, POISON.text)}) == (Library((CLEAN,), 9), ("e2",))
    assert remaining(stored, {(POISON.id, "An older text.")}) == (stored, ())
