from __future__ import annotations

from tfgrpo import near_misses
from tfgrpo.near_misses import NearMiss

LONG = "Please look up the state of the order and tell the customer in two kind sentences what happens next"


def test_two_texts_that_differ_in_one_word_are_shown_by_that_word() -> None:
    found = near_misses.find([f"{LONG} for shop-7", f"{LONG} for shop-9"])
    assert found == (NearMiss("shop-7", "shop-9"),)


def test_a_word_that_only_one_text_has_is_shown_against_nothing() -> None:
    assert near_misses.find([LONG, f"{LONG} now"]) == (NearMiss("(nothing)", "now"),)


def test_texts_that_share_little_are_no_near_miss() -> None:
    assert near_misses.find(["one two three", "four five six", ""]) == ()


def test_only_a_few_are_shown() -> None:
    assert len(near_misses.find([f"{LONG} {number}" for number in range(20)])) == near_misses.MOST_SHOWN
