from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo import prompts


@pytest.mark.parametrize("stage", get_args(prompts.Stage))
def test_every_stage_has_a_text_that_begins_with_its_name(stage: prompts.Stage) -> None:
    assert prompts.system(stage, max_words=32).splitlines()[0] == f"Stage: {stage}"


@pytest.mark.parametrize("stage", ["contrast", "propose", "consolidate"])
def test_the_word_limit_stands_in_the_text(stage: prompts.Stage) -> None:
    assert "at most 17 words" in prompts.system(stage, max_words=17)


def test_the_tags_of_a_section_stand_on_lines_of_their_own() -> None:
    assert prompts.section("rollout", "said", {"reward": "1.0"}) == '<rollout reward="1.0">\nsaid\n</rollout>'


def test_only_our_own_tags_are_escaped() -> None:
    text = "a < b, <b>, <tasks>, </rollout><Task a='1'>"
    assert prompts.escape(text) == "a < b, <b>, <tasks>, &lt;/rollout>&lt;Task a='1'>"


def test_a_tag_with_white_space_or_unseen_signs_inside_is_escaped_too() -> None:
    assert prompts.escape("< / rollout><\u200b/task><\U000e0061/library>") == "&lt; / rollout>&lt;/task>&lt;/library>"


@given(st.text("</>taskrollout \n"))
def test_no_content_can_open_or_close_a_section(text: str) -> None:
    assert prompts.section("task", text).count("</task>") == 1


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    cut = prompts.shorten("a" * 100 + "b" * 100, 10)
    assert cut == "aaaaaa\n[... 190 characters left out ...]\nbbbb"


def test_a_short_text_stays_as_it_is() -> None:
    assert prompts.shorten("short", 5) == "short"
