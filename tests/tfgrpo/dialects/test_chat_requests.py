from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects.chat import Chat
from tfgrpo.types import Message, Request, ToolCall


def _read(**fields: Any) -> Request:
    found = Chat().read_request(json.dumps({"messages": [], **fields}).encode())
    assert found is not None
    return found


def _message(**fields: Any) -> Message:
    (found,) = _read(messages=[fields]).messages
    return found


def test_the_fields_we_need_are_read() -> None:
    found = _read(
        model="m", stream=True, n=2, metadata={"session_id": "s"}, messages=[{"role": "user", "content": "hi"}], x=1
    )
    assert found == Request("m", (Message("user", "hi"),), stream=True, n=2, session_id="s")


@pytest.mark.parametrize(
    "fields",
    [
        {"model": 7},
        {"stream": "yes"},
        {"n": "2"},
        {"n": True},
        {"n": -1},
        {"metadata": []},
        {"metadata": {"session_id": 7}},
    ],
)
def test_a_field_of_the_wrong_type_counts_as_absent(fields: dict[str, Any]) -> None:
    assert _read(**fields) == Request(None, ())


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages":{}}', b"{", b'"x"', b"\xff", b'{"messages":null}'])
def test_what_is_no_request_of_this_api_is_none(body: bytes) -> None:
    assert Chat().read_request(body) is None


@pytest.mark.parametrize("content", [None, 7, {}, [], [7, None]])
def test_content_without_text_is_an_empty_text(content: Any) -> None:
    assert _message(role="user", content=content).text == ""


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}, {"type": "refusal", "refusal": "!"}]
    assert _message(role="user", content=parts).text == "a b!"


def _image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def test_an_image_leaves_a_note_that_names_its_kind() -> None:
    assert _message(role="user", content=[_image("data:a")]).text.startswith("[image_url ")


def test_two_images_leave_different_notes() -> None:
    first, second = (_message(role="user", content=[_image(url)]) for url in ("data:a", "data:b"))
    assert first != second


def test_an_image_leaves_the_same_note_however_it_is_spelled() -> None:
    part = b'{"image_url" : {"url":"\\u0064ata:a"},"type":"image_url"}'
    found = Chat().read_request(b'{"x":"\\ud83d","messages":[{"role":"u","content":[' + part + b"]}]}")
    assert found is not None
    assert found.messages[0].text == _message(role="u", content=[_image("data:a")]).text


def test_thoughts_are_no_part_of_the_text() -> None:
    assert _message(role="assistant", content=[{"type": "thinking", "thinking": "hm"}]).text == ""


def test_a_refusal_is_the_text_of_a_message_without_content() -> None:
    assert _message(role="assistant", content=None, refusal="No.").text == "No."


def test_tool_calls_and_their_results_are_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 2512292042121000001}'}}
    assert _message(role="assistant", content=None, tool_calls=[call]).tool_calls == (
        ToolCall("c1", "f", '{"a": 2512292042121000001}'),
    )
    assert _message(role="tool", tool_call_id="c1", content="7") == Message("tool", "7", tool_call_id="c1")


def test_a_call_of_a_custom_tool_is_read() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "go"}}
    assert _message(role="assistant", tool_calls=[call]).tool_calls == (ToolCall("c1", "f", "go"),)


def test_arguments_sent_as_an_object_are_read_as_text() -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": {"b": 1, "a": 2}}}
    assert _message(role="assistant", tool_calls=[call]).tool_calls == (ToolCall("c1", "f", '{"a":2,"b":1}'),)


def test_a_function_call_of_the_old_form_is_read() -> None:
    found = _message(role="assistant", function_call={"name": "f", "arguments": "{}"})
    assert found.tool_calls == (ToolCall("", "f", "{}"),)


@pytest.mark.parametrize(
    "odd",
    ['"\\ud83d"', "NaN", "1e400", "9" * 5000, "[" * 300 + "]" * 300],
    ids=["surrogate", "nan", "big", "long", "deep"],
)
def test_what_a_strict_reader_refuses_elsewhere_in_the_body_does_not_matter(odd: str) -> None:
    body = '{"odd":%s,"messages":[{"role":"user","content":"hi"}]}' % odd  # noqa: UP031 - braces all over
    assert Chat().read_request(body.encode()) == Request(None, (Message("user", "hi"),))


def test_of_doublets_the_last_counts() -> None:
    body = b'{"messages":7,"messages":[{"role":"user","role":"system","content":"a","content":"b"}]}'
    assert Chat().read_request(body) == Request(None, (Message("system", "b"),))


def test_nesting_of_any_depth_does_not_raise() -> None:
    for depth in (*range(850, 1000), 100_000):
        deep = b"[" * depth + b"]" * depth
        Chat().read_request(b'{"messages":[{"role":"user","content":[{"type":"x","y":' + deep + b"}]}]}")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "function", "id", "type", "text", "arguments", "index"]),
            inner,
            max_size=4,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["model", "stream", "n", "metadata"]), _json), st.lists(_json, max_size=3))
def test_whatever_the_fields_hold_a_list_of_messages_is_read(fields: dict[str, Any], messages: list[Any]) -> None:
    assert len(_read(**fields, messages=messages).messages) == sum(isinstance(one, dict) for one in messages)


@given(st.binary(max_size=80))
def test_whatever_bytes_come_nothing_raises(body: bytes) -> None:
    Chat().read_request(body)
