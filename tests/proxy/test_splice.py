from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import splice

_leaves = st.none() | st.booleans() | st.integers() | st.text(st.characters()) | st.just("\ud83d") | st.just('"\\/')
_values: st.SearchStrategy[Any] = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)


def _encoded(value: Any, *, ascii_only: bool, indent: int | None) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "replace")


@given(st.dictionaries(st.text(max_size=5), _values, max_size=5), st.booleans(), st.none() | st.integers(0, 2))
def test_each_member_spans_exactly_its_value(value: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    body = _encoded(value, ascii_only=ascii_only, indent=indent)
    found = {
        key.decode("utf-8", "surrogatepass"): json.loads(body[at : splice.end(body, at)])
        for key, at in splice.members(body, 0)
    }
    assert found == json.loads(body)


@given(st.lists(_values, max_size=5), st.none() | st.integers(0, 2))
def test_each_element_spans_exactly_its_value(value: list[Any], indent: int | None) -> None:
    body = _encoded(value, ascii_only=True, indent=indent)
    assert [json.loads(body[at : splice.end(body, at)]) for at in splice.elements(body, 0)] == value


@given(st.text(), st.booleans())
def test_the_offset_of_each_character_splits_a_string_where_that_character_begins(text: str, ascii_only: bool) -> None:
    body = json.dumps(text, ensure_ascii=ascii_only).encode()
    for index, at in enumerate(splice.offsets(body, 0, range(len(text) + 1))):
        assert json.loads(body[:at] + b'"') == text[:index]


@given(st.binary(max_size=60) | st.text('{}[]":,\\u0a1e.- \n', max_size=30).map(str.encode))
def test_whatever_bytes_come_they_are_readable_exactly_when_a_strict_reader_takes_them(body: bytes) -> None:
    assert (splice.unreadable(body) is None) == _strict(body)


def _strict(body: bytes) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return isinstance(json.loads(body.decode(), parse_constant=refuse, parse_int=str), dict)
    except ValueError:
        return False


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1e400}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":"\\ud83d"}',
        b'{"\\ude00":0}',
        b'{"a":1,"a":[-0, 0.10]}',
        b" \r\n\t{ } ",
        b'{"a":"\xf0\x9f\x98\x80"}',
        b'{"a":' + b"[" * 300 + b"]" * 300 + b"}",
    ],
)
def test_odd_but_valid_json_is_readable(body: bytes) -> None:
    assert splice.unreadable(body) is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b'{"a":NaN}', "not JSON"),
        (b'{"a":1}x', "not JSON"),
        (b'{"a":01}', "not JSON"),
        (b'{"a":"\n"}', "not JSON"),
        (b'\xef\xbb\xbf{"a":1}', "not JSON"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b"[1]", "not a JSON object"),
        (b'"\\ud83d"', "not a JSON object"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"a":' + b'{"b":' * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_reason(body: bytes, reason: str) -> None:
    assert reason in (splice.unreadable(body) or "")


def _top(body: bytes, name: bytes) -> Any:
    at = splice.top(body, name)
    return None if at is None else json.loads(body[at : splice.end(body, at)])


def test_of_doublets_the_last_counts() -> None:
    assert _top(b'{"m":1,"x":{"m":2},"m":[3]}', b"m") == [3]


def test_a_doublet_spelled_with_escapes_counts_too() -> None:
    assert _top(b'{"m":1,"\\u006d":2}', b"m") == 2


def test_many_doublets_are_passed_in_one_reading() -> None:
    assert _top(b'{"\\u006d":0,' + b'"m":1,"\\u006d":[],' * 50 + b'"m":2,"x":3}', b"m") == 2


def test_a_name_inside_a_value_is_no_member() -> None:
    assert _top(b'{"a":"\\"m\\":1","b":{"m":2},"c":["m"]}', b"m") is None


def test_brackets_and_quotes_inside_strings_do_not_count() -> None:
    assert _top(b'{"a":["]}\\"\\\\","[{"],"m":7}', b"m") == 7


def test_skipping_does_not_recurse() -> None:
    body = b"[" * 200_000 + b"]" * 200_000
    assert splice.end(body, 0) == len(body)


def test_edits_change_their_spans_and_nothing_else() -> None:
    assert splice.edit(b"0123456789", [(8, 9, b""), (2, 4, b"x"), (4, 4, b"y")]) == b"01xy45679"


def test_without_edits_the_body_is_the_same_object() -> None:
    body = b"{}"
    assert splice.edit(body, []) is body


@given(st.text(st.characters(codec=None)))
def test_a_quoted_text_is_ascii_and_reads_as_the_text(text: str) -> None:
    raw = splice.quoted(text)
    assert raw.isascii()
    assert splice.text(raw, 0) == text
