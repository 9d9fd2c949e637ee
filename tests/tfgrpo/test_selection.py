from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfgrpo import library
from tfgrpo.library import Limits
from tfgrpo.selection import READ, Selector, first_request, part
from tfgrpo.types import Library, Message

LESSONS = library.from_texts(
    ["Convert miles to kilometres first.", "Check the sign of a square root.", "Sort names before counting them."]
)
ONE = Limits(entries=1)

texts = st.text(alphabet="abc de", max_size=30)
libraries = st.lists(texts, max_size=12).map(library.from_texts)
limits = st.builds(Limits, entries=st.none() | st.integers(1, 8), tokens=st.none() | st.integers(1, 40))


def test_the_entry_that_shares_words_with_the_request_is_chosen() -> None:
    assert Selector(LESSONS, ONE).ids("What is the square ROOT of 9?") == ("e2",)


def test_of_equals_the_earlier_id_is_chosen_by_its_number() -> None:
    many = library.from_texts([f"lesson {word}" for word in "abcdefghijkl"])
    assert Selector(many, Limits(entries=2)).ids("nothing in common") == ("e1", "e2")


def test_the_chosen_stand_in_the_order_of_the_library() -> None:
    assert Selector(LESSONS, Limits(entries=2)).ids("names, counting; a little square") == ("e2", "e3")


def test_an_entry_that_does_not_fit_is_passed_over_for_a_smaller_one() -> None:
    two = library.from_texts(["square " * 3 + "x" * 100, "short one"])
    assert Selector(two, Limits(entries=None, tokens=10)).ids("square") == ("e2",)


def test_system_text_and_answers_do_not_choose() -> None:
    said = (Message("system", "s"), Message("user", "first"), Message("assistant", "a"), Message("user", "second"))
    assert first_request(said) == "first"


def test_an_echoed_block_does_not_choose() -> None:
    block = library.render(LESSONS, name="math", version=1)
    assert first_request((Message("user", f"hi\n\n{block}"),)) == "hi"


def test_only_the_beginning_of_a_long_request_is_read() -> None:
    assert len(first_request((Message("user", "x" * (READ + 5)),))) == READ


@given(libraries, limits, texts)
def test_what_is_chosen_is_within_the_limits(whole: Library, most: Limits, text: str) -> None:
    assert library.fits(part(whole, Selector(whole, most).ids(text)), most)


@given(libraries, limits, texts, st.lists(texts, max_size=6))
def test_the_prefix_of_a_growing_conversation_stays_the_same(
    whole: Library, most: Limits, first: str, later: list[str]
) -> None:
    said = [Message("system", "be kind"), Message("user", first)]
    prefixes = set()
    for number, text in enumerate(["", *later]):
        said += [] if number == 0 else [Message("assistant", text), Message("user", text)]
        # A selector of its own each time: another worker, or another machine.
        chosen = part(whole, Selector(whole, most).ids(first_request(said)))
        prefixes.add(library.render(chosen, name="math", version=1))
    assert len(prefixes) == 1
