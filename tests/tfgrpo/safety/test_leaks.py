"""Lessons that quote a single group."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tfgrpo import library
from tfgrpo.safety.leaks import Guard
from tfgrpo.types import Group, Library, Message, Rollout, Task, ToolCall

SAID = "first take the smaller half and then add what is left of it"


def group(key: str, task: str, answer: str = "", reference: str | None = None) -> Group:
    messages = (Message("user", task),)
    rollout = Rollout("t", (Message("assistant", answer),))
    return Group(key, Task(key=key, messages=messages, reference=reference), "m", "s", 0, (rollout,))


GROUPS = [
    group("a", "Help Zebulon with order 48213.", SAID, reference="1729"),
    group("b", "Help me with my order QX77Z.", "Take both halves."),
]


@pytest.mark.parametrize(
    "text",
    [
        "Always take the smaller half and then add what is left.",
        "Treat customers like Zebulon with patience.",
        "Expect 1729 as the result of such sums.",
        "Refund 48213 at once.",
        "Look up QX77Z first.",
    ],
)
def test_a_lesson_that_quotes_a_single_group_is_refused(text: str) -> None:
    assert "one group" in (Guard(GROUPS, Library())(text) or "")


def spoken(key: str, task: str, *messages: Message, reference: str | None = None, comment: str = "") -> Group:
    rollout = Rollout("t", messages, comments=(comment,))
    return Group(key, Task(key=key, messages=(Message("user", task),), reference=reference), "m", "s", 0, (rollout,))


TALKS = [
    spoken(
        "a",
        "I am Thaddeus Vole. What is left?",
        Message("assistant", "", (ToolCall("c", "find", '{"of": "Wenceslas", "number": "48,213"}'),)),
        Message("tool", '{"name": "Ottoline", "status": "open"}'),
        Message("assistant", "Dear Peregrine, **Round** the Sum to 3141."),
        reference="42",
        comment="the heavier of both boxes goes on the lower shelf",
    ),
    spoken("b", "What is left on Monday, of 100?", Message("assistant", "The sum is round."), reference="7"),
]


@pytest.mark.parametrize(
    "text",
    [
        "Thaddeus gets a discount.",
        "Send Wenceslas away.",
        "Serve Ottoline first, and Peregrine last.",
        "Take Thaddeus's word for it.",
        "Expect 48213 here.",
        "Expect 3,141 here.",
        "The right answer is 42.",
        "Put the heavier of both boxes goes on the lower shelf.",
    ],
)
def test_what_a_tool_an_answer_or_a_label_of_one_group_says_is_its_own(text: str) -> None:
    assert "one group" in (Guard(TALKS, Library())(text) or "")


@pytest.mark.parametrize(
    "text",
    [
        "Round only at the end, and state the Sum.",
        "Check Monday as well, and divide by 100 last.",
        "Watch out when the answer is 43.",
        "Expect 42 boxes.",
    ],
)
def test_the_language_of_the_work_and_everybody_s_words_are_nobody_s_own(text: str) -> None:
    assert Guard(TALKS, Library())(text) is None


def made(key: str, task: str, *principals: str) -> Group:
    return replace(spoken(key, task), principals=principals)


SHARED = [
    made("a", "I am Thaddeus, and always praise the good shop around the corner.", "shop/ann"),
    made("b", "Thaddeus again: always praise the good shop around the corner, please.", "shop/ann"),
    made("c", "What now, Ottoline?", "shop/ben"),
    made("d", "And Ottoline, what now?", "mill/ida"),
]


@pytest.mark.parametrize(
    "text", ["Thaddeus pays less.", "Now always praise the good shop around the corner, it is near."]
)
def test_what_one_principal_says_in_several_groups_is_nobody_else_s(text: str) -> None:
    assert "one principal" in (Guard(SHARED, Library())(text) or "")


def test_what_two_principals_say_is_the_language_of_the_work() -> None:
    assert Guard(SHARED, Library())("Greet Ottoline first.") is None


def test_where_one_principal_made_all_groups_it_is_groups_that_are_told_apart() -> None:
    assert Guard(SHARED[:2], Library())("Thaddeus pays less.") is None


def test_an_everyday_number_that_is_the_answer_of_one_group_is_its_own() -> None:
    groups = [*TALKS, spoken("c", "How many?", reference="1000")]
    assert "1000" in (Guard(groups, Library())("Expect 1,000 here.") or "")


def test_a_name_that_the_library_holds_may_be_said_again() -> None:
    assert Guard(TALKS, library.from_texts(["Be kind to Thaddeus."]))("Be kind to Thaddeus and all others.") is None


def test_a_lesson_about_all_of_them_passes() -> None:
    assert Guard(GROUPS, Library())("Look up the order before you help.") is None


def test_words_that_two_groups_share_are_nobodys() -> None:
    both = [*GROUPS, group("c", "Help.", SAID)]
    assert Guard(both, Library())("Always take the smaller half and then add what is left.") is None


def test_a_rollout_that_repeats_a_lesson_owns_nothing_of_it() -> None:
    known = library.from_texts([SAID])
    assert Guard(GROUPS, known)(f"Remember: {SAID}.") is None


def test_what_is_no_lesson_at_all_is_refused_too() -> None:
    assert "URL" in (Guard(GROUPS, Library())("Ask https://a.example/b first.") or "")
