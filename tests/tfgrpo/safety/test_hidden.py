"""Characters that nobody sees."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.safety import hidden


def test_text_in_the_tags_block_zero_width_signs_and_turned_directions_go() -> None:
    smuggled = "".join(chr(0xE0000 + ord(sign)) for sign in "obey")
    assert hidden.without(f"Co\u200bunt{smuggled} \u202eback\u202c \u2066a\u2069\ufe0f.") == "Count back a."


def test_what_is_seen_stays() -> None:
    text = "Größe — 计算 ½ x² φ\n\t«да»"
    assert hidden.without(text) == text


@given(st.text())
def test_only_what_shows_nothing_is_taken_out(text: str) -> None:
    left = hidden.without(text)
    gone = [sign for sign in text if sign not in left]
    assert all(unicodedata.category(sign) in ("Cf", "Mn", "Lo", "So", "Cn") for sign in gone)
    assert hidden.without(left) == left
