from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects import sse


def _data(body: bytes) -> list[bytes]:
    return list(sse.data(body))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_ends_in_any_of_three_ways(end: bytes) -> None:
    assert _data(b"data: 1\n\ndata: 2\n\n".replace(b"\n", end)) == [b"1", b"2"]


def test_one_space_after_the_colon_is_dropped_if_it_is_there() -> None:
    assert _data(b"data:1\n\ndata:  2\n\n") == [b"1", b" 2"]


def test_several_data_lines_of_an_event_are_joined() -> None:
    assert _data(b"data: 1\ndata: 2\n\n") == [b"1\n2"]


def test_comments_and_other_fields_are_passed_over() -> None:
    assert _data(b": ping\n\nevent: message\nid: 7\nretry: 1\n: note\ndata: 1\n\n") == [b"1"]


def test_extra_blank_lines_are_passed_over() -> None:
    assert _data(b"\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n") == [b"1", b"2"]


def test_a_last_event_without_its_blank_line_is_read() -> None:
    assert _data(b"data: 1\n\ndata: 2") == [b"1", b"2"]


def test_a_byte_order_mark_is_dropped() -> None:
    assert _data(b"\xef\xbb\xbfdata: 1\n\n") == [b"1"]


@pytest.mark.parametrize("body", [b"data:{}", b": ping\n", b"\r\nevent: x\n", b"id:1\n", b"\xef\xbb\xbfdata: 1"])
def test_a_stream_of_events_is_recognised_by_its_first_line(body: bytes) -> None:
    assert sse.looks_like_events(body)


@pytest.mark.parametrize("body", [b"", b'{"data":1}', b"<html>", b"database"])
def test_what_begins_otherwise_is_no_stream_of_events(body: bytes) -> None:
    assert not sse.looks_like_events(body)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1), max_size=5))
def test_what_was_sent_as_events_is_read_back(sent: list[str]) -> None:
    body = b"".join(b"data: " + one.encode() + b"\r\n\r\n" for one in sent)
    assert _data(body) == [one.encode() for one in sent]
