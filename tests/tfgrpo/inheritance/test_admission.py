from __future__ import annotations

import json
from typing import Any

from tests.tfgrpo.inheritance.test_own import VERSION, edited
from tfgrpo import inheritance
from tfgrpo.inheritance import Inherited, admission
from tfgrpo.library import Limits
from tfgrpo.types import Experience, Library, Version


def flat(*texts: str) -> Inherited:
    return inheritance.read(json.dumps({f"G{n}": text for n, text in enumerate(texts)}), name="f.json")


def ours(**values: Any) -> Inherited:
    return inheritance.read(edited(**values), name="f.json")


def version(*ids: str, next_id: int, name: str = "s", number: int = 2) -> Version:
    entries = tuple(Experience(id_, f"text of {id_}") for id_ in ids)
    return Version(name, number, Library(entries, next_id), "by hand", 0.0)


def ids(inherited: Inherited, *versions: Version, set_name: str = "s") -> tuple[list[str], int]:
    library = admission.numbered(inherited, admission.admit(inherited, Limits()), versions, set_name=set_name)
    return [one.id for one in library.experiences], library.next_id


def standing(inherited: Inherited, *versions: Version, set_name: str = "s", limits: Limits | None = None) -> Any:
    admitted = admission.admit(inherited, limits or Limits())
    return admission.standing(inherited, admitted, versions, set_name=set_name)


def test_what_is_refused_is_told_with_its_reason_and_the_others_are_taken() -> None:
    admitted = admission.admit(flat("One.", " ", "one. ", "x" * 2001, "a\0b", "Two.", "Three."), Limits(entries=2))
    assert [one.text for one in admitted.experiences] == ["One.", "Two."]
    assert [(id_, reason.split(";")[0]) for id_, reason in admitted.refused] == [
        ("G1", "no text"),
        ("G2", "G0 says the same"),
        ("G3", "2001 characters, 2000 are allowed"),
        ("G4", "holds control characters"),
        ("G6", "the library is full (2 entries)"),
    ]


def test_a_lesson_longer_than_a_learned_one_is_taken_whole_and_named() -> None:
    admitted = admission.admit(flat("one\n two  three", "one two"), Limits(words=2))
    assert ([one.text for one in admitted.experiences], admitted.long) == (["one two three", "one two"], ("G0",))


def test_foreign_lessons_get_ids_that_were_never_given() -> None:
    assert ids(flat("a", "b"), version("e1", next_id=7)) == (["e7", "e8"], 9)


def test_an_export_keeps_its_ids_in_an_empty_set() -> None:
    assert ids(ours()) == (["e2", "greeting"], 9)


def test_an_export_keeps_its_ids_in_the_set_it_came_from() -> None:
    assert ids(ours(), version("e2", next_id=20)) == (["e2", "greeting"], 20)


def test_an_id_that_another_set_gave_to_another_lesson_is_replaced() -> None:
    assert ids(ours(), version("e2", next_id=5, name="t"), set_name="t") == (["e5", "greeting"], 6)


def test_an_id_that_was_deleted_in_the_set_is_not_given_again() -> None:
    assert ids(ours(), version("e1", next_id=5)) == (["e9", "greeting"], 10)


def test_an_unedited_export_keeps_status_and_parent_in_its_set() -> None:
    assert standing(ours(), version("e2", next_id=9)) == ("helps", 2, "n")


def test_a_parent_that_is_no_version_of_the_set_is_not_kept() -> None:
    assert standing(ours())[:2] == ("helps", None)
    assert standing(ours(), version("e2", next_id=9, name="t"), set_name="t")[:2] == ("helps", None)


def test_an_edited_export_is_by_hand() -> None:
    entries = [{"id": "e2", "text": "Other."}]
    assert standing(ours(experiences=entries)) == (
        "by hand",
        None,
        "imported from f.json (s@3, edited since its export)",
    )


def test_a_part_of_an_export_is_by_hand() -> None:
    assert standing(ours(), limits=Limits(entries=1))[::2] == ("by hand", "imported from f.json (s@3, in part)")


def test_a_foreign_list_is_by_hand() -> None:
    assert standing(flat("a")) == ("by hand", None, "imported from f.json (flat JSON)")


def test_an_export_that_is_taken_back_is_the_same_library() -> None:
    library = admission.numbered(ours(), admission.admit(ours(), Limits()), [], set_name="s")
    assert library == VERSION.library
