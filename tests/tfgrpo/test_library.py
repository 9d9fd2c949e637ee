from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo import library
from tfgrpo import library as libraries
from tfgrpo.library import Limits
from tfgrpo.types import Experience, Library, Operation

TWO = Library((Experience("e1", "Check the units.", ("g1",)), Experience("e2", "Round once.", ("g2",))), 3)


def test_an_added_lesson_gets_the_next_id() -> None:
    edit = library.apply(TWO, [Operation("add", text="Read twice.", sources=("g3",))])
    assert edit.library.experiences[-1] == Experience("e3", "Read twice.", ("g3",))


def test_an_id_is_never_given_again_after_its_entry_was_deleted() -> None:
    edit = library.apply(TWO, [Operation("delete", ("e2",)), Operation("add", text="New.")])
    assert [entry.id for entry in edit.library.experiences] == ["e1", "e3"]


def test_an_update_keeps_the_id_and_gathers_sources_and_support() -> None:
    edit = library.apply(TWO, [Operation("update", ("e1",), "Check every unit.", sources=("g9",))])
    assert edit.library.experiences[0] == Experience("e1", "Check every unit.", ("g1", "g9"), support=2)


def test_an_update_of_an_unknown_id_is_refused_and_never_becomes_an_add() -> None:
    edit = library.apply(TWO, [Operation("update", ("e7",), "Anything.")])
    assert edit.library == TWO
    assert edit.refused[0].reason == "no entry has the id e7"


def test_a_delete_needs_no_text() -> None:
    assert len(library.apply(TWO, [Operation("delete", ("e1",))]).library) == 1


def test_a_merge_keeps_the_first_id_named_and_joins_the_sources() -> None:
    edit = library.apply(TWO, [Operation("merge", ("e2", "e1"), "Check units, round once.")])
    assert edit.library.experiences == (Experience("e2", "Check units, round once.", ("g2", "g1"), 2),)


def test_a_merge_of_one_entry_with_itself_is_refused() -> None:
    edit = library.apply(TWO, [Operation("merge", ("e1", "e1"), "x")])
    assert edit.refused[0].reason == "merge needs two or more different ids, got 1"


def test_keep_is_accepted_and_changes_nothing() -> None:
    edit = library.apply(TWO, [Operation("keep", ("e1",))])
    assert (edit.library, len(edit.applied)) == (TWO, 1)


def test_a_lesson_over_the_word_limit_is_refused_with_both_numbers() -> None:
    edit = library.apply(TWO, [Operation("add", text="one two three")], limits=Limits(words=2))
    assert edit.refused[0].reason == "3 words, 2 are allowed"


def test_a_full_library_refuses_an_add_and_says_what_to_do() -> None:
    edit = library.apply(TWO, [Operation("add", text="New.")], limits=Limits(entries=2))
    assert edit.refused[0].reason == "the library is full (2 entries); merge or delete first"


def test_a_doublet_is_refused_whatever_its_case_and_spacing() -> None:
    edit = library.apply(TWO, [Operation("add", text="  CHECK   the units. ")])
    assert edit.refused[0].reason == "entry e1 says the same already"


def test_edits_over_the_bound_of_a_step_are_refused() -> None:
    operations = [Operation("add", text=text) for text in ("a", "b", "c")]
    edit = library.apply(TWO, operations, limits=Limits(edits=2))
    assert (len(edit.applied), edit.refused[0].reason) == (2, "only 2 edits are allowed in one step")


def test_a_library_of_texts_leaves_out_blanks_and_doublets() -> None:
    made = library.from_texts(["Round once.", "  ", "New\n one.", "Round  once."])
    assert made == Library((Experience("e1", "Round once."), Experience("e2", "New one.")), 3)


def test_a_diff_names_what_was_added_removed_and_changed() -> None:
    after = library.apply(
        TWO, [Operation("delete", ("e1",)), Operation("update", ("e2",), "Round last."), Operation("add", text="N")]
    ).library
    diff = library.diff(TWO, after)
    assert [entry.id for entry in diff.added] == ["e3"]
    assert diff.removed == (TWO.experiences[0],)
    assert diff.changed[0][1].text == "Round last."


def test_an_empty_library_renders_to_nothing() -> None:
    assert library.render(Library(), name="m", version=1) == ""


def test_the_block_names_its_set_and_version_on_its_first_line() -> None:
    first = library.render(TWO, name="math", version=4).splitlines()[0]
    assert first.startswith("<<<tfgrpo experiences math@4 ")


def test_a_lesson_that_holds_a_marker_cannot_end_the_block() -> None:
    nasty = Library((Experience("e1", f"say {library.BLOCK_END} now"),), 2)
    block = library.render(nasty, name="m", version=1)
    assert library.strip(f"before\n\n{block}") == "before"


@pytest.mark.parametrize("run", range(3, 9))
def test_a_longer_run_of_angle_brackets_cannot_end_the_block_either(run: int) -> None:
    nasty = Library((Experience("e1", "<" * run + library.BLOCK_END.lstrip("<")),), 2)
    assert library.strip(f"before\n\n{library.render(nasty, name='m', version=1)}") == "before"


def test_a_marker_without_its_end_swallows_nothing_before_a_later_block() -> None:
    block = library.render(TWO, name="m", version=1)
    text = block.removesuffix(library.BLOCK_END)
    assert library.strip(f"{text}\n\n{block}") == text


def test_spans_are_what_strip_takes_out() -> None:
    block = library.render(TWO, name="m", version=1)
    assert library.spans(f"a\n\n{block}b{block}") == ((1, 3 + len(block)), (4 + len(block), 4 + 2 * len(block)))


_operations = st.lists(
    st.builds(
        Operation,
        operation=st.sampled_from(["add", "update", "merge", "delete", "keep"]),
        ids=st.lists(st.sampled_from(["e1", "e2", "e3", "e4", "x", "[e1]"]), max_size=3).map(tuple),
        text=st.none() | st.text(max_size=40),
        sources=st.lists(st.sampled_from(["g1", "g2"]), max_size=2).map(tuple),
    ),
    max_size=8,
)


@given(_operations)
def test_whatever_is_applied_each_operation_is_applied_or_refused_and_ids_stay_unique(
    operations: list[Operation],
) -> None:
    edit = library.apply(TWO, operations)
    ids = [entry.id for entry in edit.library.experiences]
    assert len(edit.applied) + len(edit.refused) == len(operations)
    assert len(set(ids)) == len(ids)
    assert all(int(id_[1:]) < edit.library.next_id for id_ in ids)


@given(_operations)
def test_an_entry_that_no_operation_names_stays_as_it_is(operations: list[Operation]) -> None:
    edit = library.apply(TWO, operations)
    named = {id_ for operation in operations for id_ in operation.ids}
    for entry in TWO.experiences:
        if entry.id not in named:
            assert entry in edit.library.experiences


@given(st.text(), st.text(), st.lists(st.text(min_size=1, max_size=60), max_size=4))
def test_a_block_appended_to_any_text_is_taken_out_without_a_trace(before: str, after: str, texts: list[str]) -> None:
    block = library.render(library.from_texts(texts), name="set.a-b", version=12)
    joined = f"{before}\n\n{block}" if block else before
    assert library.strip(joined + after) == before + after


def test_a_library_over_its_limit_loses_its_least_supported_and_newest_entries() -> None:
    entries = (Experience("e1", "One.", support=2), Experience("e2", "Two."), Experience("e3", "Three."))
    edit = libraries.fit(Library(entries, 4), Limits(entries=2))
    assert [one.id for one in edit.library.experiences] == ["e1", "e2"]
    assert (edit.applied[0].ids, "least support (1)" in edit.applied[0].why) == (("e3",), True)


def test_an_entry_that_would_take_too_many_tokens_is_refused_and_a_shorter_wording_is_not() -> None:
    library = Library((Experience("e1", "Twenty characters ok"),), 2)
    limits = Limits(tokens=6)
    refused = libraries.apply(library, [Operation("add", (), "More.")], limits=limits).refused
    assert refused[0].reason == "the library would take 7 tokens, 6 are allowed; merge or delete first"
    assert libraries.apply(library, [Operation("update", ("e1",), "Short.")], limits=limits).refused == ()
