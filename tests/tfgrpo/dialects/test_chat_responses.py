from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects.chat import Chat
from tfgrpo.types import Choice, Message, Response, ToolCall

JSON, SSE = "application/json", "text/event-stream; charset=utf-8"


def _read(body: bytes, content_type: str = JSON) -> Response:
    found = Chat().read_response(body, content_type)
    assert found is not None
    return found


def _delta(index: int = 0, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def _call(**fields: Any) -> dict[str, Any]:
    return _delta(tool_calls=[fields])


def _stream(*chunks: dict[str, Any], done: bool = True) -> bytes:
    events = [json.dumps(chunk).encode() for chunk in chunks] + ([b"[DONE]"] if done else [])
    return b"".join(b"data: " + event + b"\n\n" for event in events)


STOP = _delta(finish="stop")
USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}


def _assembled(*chunks: dict[str, Any]) -> Response:
    return _read(_stream(*chunks), SSE)


def _message(*chunks: dict[str, Any]) -> Message:
    (choice,) = _assembled(*chunks, STOP).choices
    return choice.message


def test_a_json_answer_is_read() -> None:
    message = {"role": "assistant", "content": "4"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = json.dumps({"id": "c", "choices": choices, "usage": USAGE["usage"]}).encode()
    assert _read(body) == Response("c", (Choice(0, Message("assistant", "4"), "stop"),), 3, 4)


def test_tokens_that_the_upstream_does_not_give_are_none() -> None:
    found = _read(b'{"choices":[{"message":{"content":"4"}}]}')
    assert (found.prompt_tokens, found.completion_tokens) == (None, None)


def test_an_answer_without_choices_is_not_complete() -> None:
    assert not _read(b'{"error":{"message":"queue full"}}').complete


@pytest.mark.parametrize("body", [b"", b"<html>502</html>", b"[1]", b"\xff"])
def test_what_is_no_answer_is_none(body: bytes) -> None:
    assert Chat().read_response(body, "text/html") is None


def test_a_stream_is_put_together() -> None:
    found = _assembled(_delta(role="assistant", content=""), _delta(content="Hel"), _delta(content="lo"), STOP, USAGE)
    assert found == Response("c", (Choice(0, Message("assistant", "Hello"), "stop"),), 3, 4)


def test_a_stream_and_a_json_answer_of_one_content_read_alike() -> None:
    body = b'{"id":"c","choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}'
    assert _assembled(_delta(content="Hello"), STOP) == _read(body)


def test_a_stream_that_names_no_type_is_recognised() -> None:
    assert _read(b": PROCESSING\n\n" + _stream(_delta(content="a"), STOP), "").choices[0].message.text == "a"


def test_comments_and_line_ends_do_not_matter() -> None:
    body = b": PROCESSING\n\n" + _stream(_delta(content="a"), STOP)
    assert _read(body.replace(b"\n", b"\r\n").replace(b"data: ", b"data:"), SSE) == _assembled(
        _delta(content="a"), STOP
    )


def test_interleaved_choices_are_kept_apart() -> None:
    found = _assembled(
        _delta(1, content="b"), _delta(0, content="a"), _delta(1, "stop", content="B"), _delta(0, "stop", content="A")
    )
    assert [(choice.index, choice.message.text) for choice in found.choices] == [(0, "aA"), (1, "bB")]


def test_chunks_without_choices_are_passed_over() -> None:
    assert _message({"id": "c"}, _delta(content="a"), USAGE, {"choices": None}) == Message("assistant", "a")


def test_interleaved_tool_calls_are_kept_apart_by_index() -> None:
    found = _message(
        _call(index=0, id="x", function={"name": "f", "arguments": ""}),
        _call(index=1, id="y", function={"name": "g", "arguments": ""}),
        _call(index=0, function={"arguments": '{"a"'}),
        _call(index=1, function={"arguments": "{}"}),
        _call(index=0, function={"arguments": ":1}"}),
    )
    assert found.tool_calls == (ToolCall("x", "f", '{"a":1}'), ToolCall("y", "g", "{}"))


def test_tool_calls_without_index_are_told_apart_by_id() -> None:
    found = _message(
        _call(id="x", function={"name": "f", "arguments": "{"}),
        _call(id="y", function={"name": "g", "arguments": "{"}),
        _call(id="x", function={"arguments": "}"}),
    )
    assert found.tool_calls == (ToolCall("x", "f", "{}"), ToolCall("y", "g", "{"))


def test_a_piece_with_neither_index_nor_id_belongs_to_the_newest_call() -> None:
    found = _message(
        _call(id="x", function={"name": "f"}),
        _call(id="y", function={"name": "g"}),
        _call(function={"arguments": "{}"}),
    )
    assert found.tool_calls == (ToolCall("x", "f", ""), ToolCall("y", "g", "{}"))


def test_a_streamed_function_call_of_the_old_form_is_read() -> None:
    found = _message(_delta(function_call={"name": "f", "arguments": "{"}), _delta(function_call={"arguments": "}"}))
    assert found.tool_calls == (ToolCall("", "f", "{}"),)


def test_a_streamed_refusal_is_the_text() -> None:
    assert _message(_delta(refusal="N"), _delta(refusal="o.")).text == "No."


def test_streamed_parts_are_joined() -> None:
    parts = ([{"type": "thinking", "thinking": "hm"}], [{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}])
    assert _message(*(_delta(content=part) for part in parts)).text == "ab"


def test_halves_of_a_character_in_two_chunks_make_it_whole() -> None:
    assert _message(_delta(content="\ud83d"), _delta(content="\ude00")).text == "😀"


def test_a_stream_that_says_done_is_complete() -> None:
    assert _assembled(_delta(content="a")).complete


def test_a_stream_whose_choices_all_finished_is_complete() -> None:
    assert _read(_stream(_delta(0, "stop"), _delta(1, "length"), done=False), SSE).complete


@pytest.mark.parametrize(
    "body",
    [
        b"",
        _stream(_delta(content="a"), done=False),
        _stream(_delta(0, "stop"), _delta(1), done=False),
        _stream({"error": {"message": "queue full"}}),
        _stream(_delta(content="a"), {"error": {"message": "queue full"}}, STOP),
        _stream(_delta(content="a"))[:-20],
        b"data: {\n\n" + _stream(STOP),
        _stream(),
    ],
    ids=["nothing", "no end", "one unfinished", "only error", "error inside", "cut", "broken event", "only done"],
)
def test_a_stream_without_a_sound_end_is_not_complete(body: bytes) -> None:
    assert not _read(body, SSE).complete


@given(st.data())
def test_however_a_stream_is_cut_short_it_is_never_read_as_another_answer(data: st.DataObject) -> None:
    body = _stream(_delta(content="Héllo 😀 "), _delta(content="world"), STOP, USAGE)
    cut = _read(body[: data.draw(st.integers(0, len(body)))], SSE)
    text = cut.choices[0].message.text if cut.choices else ""
    assert text == "Héllo 😀 world" if cut.complete else "Héllo 😀 world".startswith(text)


@given(st.binary(max_size=80), st.sampled_from([JSON, SSE, "", "text/plain"]))
def test_whatever_bytes_come_nothing_raises(body: bytes, content_type: str) -> None:
    Chat().read_response(body, content_type)
    Chat().read_response(b"data: " + body, content_type)
