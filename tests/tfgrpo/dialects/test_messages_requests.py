from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects.messages import CountTokens, Messages
from tfgrpo.types import Message, Request, ToolCall

MARK = {"type": "ephemeral"}


def _read(**fields: Any) -> Request:
    found = Messages().read_request(json.dumps({"messages": [], **fields}).encode())
    assert found is not None
    return found


def _turn(role: str, *blocks: Any) -> tuple[Message, ...]:
    return _read(messages=[{"role": role, "content": list(blocks)}]).messages


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _result(content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}


def _image(**more: Any) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "data": "aa"}, **more}


def test_the_fields_we_need_are_read() -> None:
    found = _read(
        model="m",
        max_tokens=9,
        system="Be brief.",
        stream=True,
        metadata={"session_id": "s", "user_id": "u"},
        messages=[{"role": "user", "content": "hi"}],
    )
    assert found == Request("m", (Message("system", "Be brief."), Message("user", "hi")), stream=True, session_id="s")


@pytest.mark.parametrize("system", [None, "", [], 7, {}])
def test_a_system_without_text_is_no_message(system: Any) -> None:
    assert _read(system=system).messages == ()


def test_system_blocks_are_joined() -> None:
    assert _read(system=[_text("a "), {**_text("b"), "cache_control": MARK}]).messages == (Message("system", "a b"),)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages":"hi"}', b"{", b"\xff"])
def test_what_is_no_request_of_this_api_is_none(body: bytes) -> None:
    assert Messages().read_request(body) is None


def test_text_blocks_are_joined() -> None:
    assert _turn("user", _text("a "), _text("b")) == (Message("user", "a b"),)


def test_the_calls_of_an_answer_are_read_beside_its_text() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"b": [1.5], "a": 2512292042121000001}}
    assert _turn("assistant", {"type": "thinking", "thinking": "hm", "signature": "s"}, _text("Well."), call) == (
        Message("assistant", "Well.", (ToolCall("toolu_1", "f", '{"a":2512292042121000001,"b":[1.5]}'),)),
    )


def test_what_the_providers_own_tools_found_is_passed_over() -> None:
    asked = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]}
    assert _turn("assistant", asked, found, _text("So.")) == (
        Message("assistant", "So.", (ToolCall("srvtoolu_1", "web_search", '{"query":"q"}'),)),
    )


@pytest.mark.parametrize("content", ["7", [_text("7")]])
def test_a_tools_result_is_a_tools_message(content: Any) -> None:
    assert _turn("user", _result(content)) == (Message("tool", "7", tool_call_id="toolu_1"),)


def test_results_and_texts_of_one_message_keep_their_order() -> None:
    assert [(one.role, one.text) for one in _turn("user", _result("1"), _result("2"), _text("a"), _text("b"))] == [
        ("tool", "1"),
        ("tool", "2"),
        ("user", "ab"),
    ]


def test_a_result_without_content_is_an_empty_message() -> None:
    assert _turn("user", {"type": "tool_result", "tool_use_id": "t"}) == (Message("tool", "", tool_call_id="t"),)


def test_an_image_leaves_a_note() -> None:
    (found,) = _turn("user", _image(), _text("?"))
    assert found.text.startswith("[image ")
    assert found.text.endswith("]?")


def test_a_cache_mark_that_moves_on_does_not_change_a_note() -> None:
    assert _turn("user", _image()) == _turn("user", _image(cache_control=MARK))


@pytest.mark.parametrize("content", [None, 7, {}, [], [7, None]])
def test_content_without_text_is_an_empty_text(content: Any) -> None:
    for role in ("user", "assistant"):
        assert _read(messages=[{"role": role, "content": content}]).messages == (Message(role),)


def test_a_request_to_count_tokens_is_read_like_the_message_it_speaks_of() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    assert CountTokens().read_request(body) == Messages().read_request(body)


def test_a_count_of_tokens_is_no_answer() -> None:
    assert CountTokens().read_response(b'{"input_tokens":7}', "application/json") is None


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "id", "name", "input", "tool_use_id", "thinking"]),
            inner | st.sampled_from(["assistant", "user", "text", "tool_use", "tool_result"]),
            max_size=4,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["model", "system", "metadata"]), _json), st.lists(_json, max_size=3))
def test_whatever_the_fields_hold_a_list_of_messages_is_read(fields: dict[str, Any], messages: list[Any]) -> None:
    _read(**fields, messages=messages)


@given(st.binary(max_size=80))
def test_whatever_bytes_come_nothing_raises(body: bytes) -> None:
    Messages().read_request(body)
