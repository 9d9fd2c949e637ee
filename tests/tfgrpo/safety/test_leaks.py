"""Lessons that quote a single group."""

from __future__ import annotations

import pytest

from tfgrpo import library
from tfgrpo.safety.leaks import Guard
from tfgrpo.types import Group, Library, Message, Rollout, Task

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
