from __future__ import annotations

from proxy import hand_written
from proxy.hand_written import Lesson
from tfgrpo.types import Experience, Library, Version


def version(number: int, *entries: Experience, next_id: int = 10) -> Version:
    return Version("math", number, Library(tuple(entries), next_id), "by hand", 0.0)


def test_an_entry_without_an_id_gets_one_that_was_never_given() -> None:
    made = hand_written.library([Lesson(text="new")], [version(1, next_id=7)], parent=None)
    assert made == Library((Experience("e7", "new"),), 8)


def test_an_entry_with_a_known_id_keeps_its_provenance() -> None:
    old = Experience("e3", "old", ("g-1",), 4)
    made = hand_written.library([Lesson(text="better", id="e3")], [version(1, old)], parent=1)
    assert made.experiences == (Experience("e3", "better", ("g-1",), 4),)


def test_the_parents_provenance_counts_before_the_newest() -> None:
    versions = [version(1, Experience("e3", "a", ("g-1",))), version(2, Experience("e3", "b", ("g-2",)))]
    made = hand_written.library([Lesson(text="c", id="e3")], versions, parent=1)
    assert made.experiences[0].sources == ("g-1",)


def test_an_imported_id_is_kept_and_not_given_again() -> None:
    made = hand_written.library([Lesson(text="a", id="e40"), Lesson(text="b")], [], parent=None)
    assert [entry.id for entry in made.experiences] == ["e40", "e41"]


def test_white_space_around_a_text_does_not_count() -> None:
    assert Lesson(text="  a  ").text == "a"
