from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects.responses import Responses
from tfgrpo.types import Message, Request, ToolCall

CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a": 2512292042121000001}'}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "4", "annotations": [], "logprobs": []}],
}


def _read(**fields: Any) -> Request:
    found = Responses().read_request(json.dumps(fields).encode())
    assert found is not None
    return found


def _items(*items: Any) -> tuple[Message, ...]:
    return _read(input=list(items)).messages


def test_the_fields_we_need_are_read() -> None:
    found = _read(
        model="m",
        input="hi",
        instructions="Be brief.",
        stream=True,
        previous_response_id="resp_1",
        metadata={"session_id": "s"},
        store=False,
    )
    assert found == Request(
        "m",
        (Message("system", "Be brief."), Message("user", "hi")),
        stream=True,
        previous_response_id="resp_1",
        session_id="s",
    )


@pytest.mark.parametrize(
    "fields", [{"instructions": None}, {"instructions": 7}, {"previous_response_id": ""}, {"stream": 1}, {"model": []}]
)
def test_a_field_of_the_wrong_type_counts_as_absent(fields: dict[str, Any]) -> None:
    assert _read(input="hi", **fields) == Request(None, (Message("user", "hi"),))


@pytest.mark.parametrize("body", [b"", b"[]", b'{"input":7}', b'{"input":null}', b"{", b"\xff"])
def test_what_is_no_request_of_this_api_is_none(body: bytes) -> None:
    assert Responses().read_request(body) is None


def test_a_request_without_input_has_no_messages() -> None:
    assert _read(prompt={"id": "pmpt_1"}).messages == ()


def test_messages_are_read_with_or_without_their_type() -> None:
    parts = [{"type": "input_text", "text": "a "}, {"type": "input_text", "text": "b"}]
    assert _items({"role": "developer", "content": "A"}, {"type": "message", "role": "user", "content": parts}) == (
        Message("developer", "A"),
        Message("user", "a b"),
    )


def test_an_image_leaves_a_note() -> None:
    (found,) = _items({"role": "user", "content": [{"type": "input_image", "image_url": "data:a"}]})
    assert found.text.startswith("[input_image ")


def test_the_output_of_a_function_is_a_tools_message() -> None:
    assert _items({"type": "function_call_output", "call_id": "c1", "output": "7"}) == (
        Message("tool", "7", tool_call_id="c1"),
    )


def test_output_in_parts_is_joined() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    assert _items({"type": "custom_tool_call_output", "call_id": "c1", "output": parts})[0].text == "ab"


def test_output_that_is_a_picture_leaves_a_note() -> None:
    shot = {"type": "computer_screenshot", "image_url": "data:a"}
    (found,) = _items({"type": "computer_call_output", "call_id": "c1", "output": shot})
    assert found.text.startswith("[computer_screenshot ")


def test_what_the_model_said_in_a_row_is_one_message() -> None:
    assert _items({"role": "user", "content": "hi"}, {"type": "reasoning", "summary": []}, SAID, CALL) == (
        Message("user", "hi"),
        Message("assistant", "4", (ToolCall("c1", "f", '{"a": 2512292042121000001}'),)),
    )


def test_what_stands_between_two_answers_parts_them() -> None:
    assert [one.role for one in _items(SAID, {"role": "user", "content": "and?"}, SAID)] == [
        "assistant",
        "user",
        "assistant",
    ]


def test_the_call_of_a_custom_tool_is_read() -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"}
    assert _items(call)[0].tool_calls == (ToolCall("c1", "patch", "*** Begin"),)


def test_the_call_of_a_tool_that_the_api_defines_goes_by_its_kind() -> None:
    call = {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}}
    assert _items(call)[0].tool_calls == (ToolCall("c1", "local_shell_call", '{"command":["ls"],"type":"exec"}'),)


@pytest.mark.parametrize("kind", ["reasoning", "web_search_call", "mcp_list_tools", "compaction", "unheard_of"])
def test_an_item_that_is_no_part_of_the_conversation_is_passed_over(kind: str) -> None:
    assert _items({"type": kind, "id": "x"}, 7, None) == ()


@pytest.mark.parametrize("reference", [{"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}])
def test_an_item_may_be_named_instead_of_repeated(reference: dict[str, Any]) -> None:
    found = _read(input=[{"role": "user", "content": "hi"}, reference, {"role": "user", "content": "and?", "id": "x"}])
    assert found.references == ("msg_1",)


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_a_conversation_that_the_api_keeps_is_referred_to(conversation: Any) -> None:
    assert _read(input="hi", conversation=conversation).references == ("conv_1",)


def test_many_answers_in_a_row_take_time_that_grows_with_them() -> None:
    body = b'{"input":[' + b",".join([b'{"type":"function_call","call_id":"c"}'] * 50_000) + b"]}"
    found = Responses().read_request(body)
    assert found is not None
    assert [len(one.tool_calls) for one in found.messages] == [50_000]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "call_id", "arguments", "action", "output", "name"]),
            inner,
            max_size=4,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["model", "instructions", "metadata"]), _json), st.lists(_json, max_size=3))
def test_whatever_the_fields_hold_a_list_of_items_is_read(fields: dict[str, Any], items: list[Any]) -> None:
    _read(**fields, input=items)


@given(st.binary(max_size=80))
def test_whatever_bytes_come_nothing_raises(body: bytes) -> None:
    Responses().read_request(body)
