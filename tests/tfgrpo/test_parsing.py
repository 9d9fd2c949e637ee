from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo import parsing

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
    max_leaves=12,
)


def read(text: str) -> object:
    (found,) = parsing.find(text)
    return found.value


@given(st.text())
def test_reading_never_raises(text: str) -> None:
    parsing.find(text)


@given(st.text('{}[]",:\\n/u0-<think>ab'))
def test_reading_what_looks_like_json_never_raises(text: str) -> None:
    parsing.find(text)


@given(st.dictionaries(st.text("abc", min_size=1), JSON), st.sampled_from([None, 1]))
def test_valid_json_without_control_characters_is_read_as_it_is(value: dict[str, object], indent: int | None) -> None:
    written = json.dumps(value, indent=indent)
    # \b and \f are taken for LaTeX, and so is an n, r or t that begins a command's name.
    if not any(escape in written for escape in ("\\b", "\\f", "\\n", "\\r", "\\t")):
        assert [one.value for one in parsing.find(written)] == [value]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Sure {in short}: {"a": [1, 2,],} Bye.', {"a": [1, 2]}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": "say "hi" first", "b": 2}', {"a": 'say "hi" first', "b": 2}),
        ('{"a": 1, // why\n "b": 2}', {"a": 1, "b": 2}),
        ('<think>{"a": 0}</think>{"a": 1}', {"a": 1}),
        ('so {"a": 0}?</think>{"a": 1}', {"a": 1}),
        (r'{"a": "\ud83d\ude00"}', {"a": "\U0001f600"}),
        (r'{"a": "\ud83d"}', {"a": "\ufffd"}),
    ],
)
def test_what_models_do_to_json_is_read(text: str, value: object) -> None:
    assert parsing.find(text)[-1].value == value


@pytest.mark.parametrize("latex", [r"\frac{1}{2}", r"\beta", r"\nabla f", r"\theta", r"\rho", r"\sqrt{2}", r"\text{m}"])
def test_latex_with_a_single_backslash_survives(latex: str) -> None:
    assert read('{"a": "use ' + latex + '"}') == {"a": f"use {latex}"}


def test_latex_that_is_escaped_survives() -> None:
    assert read(r'{"a": "\\frac{1}{2} \\times"}') == {"a": r"\frac{1}{2} \times"}


def test_a_line_break_stays_a_line_break() -> None:
    assert read(r'{"a": "one\nNext\tthen"}') == {"a": "one\nNext\tthen"}


def test_an_answer_that_is_cut_keeps_what_was_whole() -> None:
    (found,) = parsing.find('{"a": [{"b": "whole"}, {"b": "ha')
    assert (found.value, found.cut) == ({"a": [{"b": "whole"}, {}]}, True)


def test_an_answer_that_ends_is_not_cut() -> None:
    assert not parsing.find('{"a": [1]} and more')[0].cut


def test_nesting_without_end_is_left_alone() -> None:
    assert isinstance(parsing.find("[" * 100_000), list)
