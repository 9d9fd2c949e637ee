from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tfgrpo.dialects.events import message_events, stream
from tfgrpo.dialects.messages import Messages
from tfgrpo.types import Choice, Message, Response, ToolCall

JSON, SSE = "application/json", "text/event-stream; charset=utf-8"
THOUGHT = {"type": "thinking", "thinking": "hmm", "signature": "s"}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _call(**given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": "f", "input": given}


def _whole(*content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": stop}
    return {**head, "content": list(content), "usage": {"input_tokens": 3, "output_tokens": 4}}


def _read(body: bytes, content_type: str = JSON) -> Response:
    found = Messages().read_response(body, content_type)
    assert found is not None
    return found


def _json_answer(message: dict[str, Any]) -> Response:
    return _read(json.dumps(message).encode())


def _streamed(*events: dict[str, Any]) -> Response:
    return _read(stream(*events), SSE)


ANSWER = _whole(THOUGHT, _text("Hello "), _text("world"), _call(city="Zürich", n=1), stop="tool_use")
SAID = Message("assistant", "Hello world", (ToolCall("toolu_1", "f", '{"city":"Zürich","n":1}'),))
READ = Response("msg_1", (Choice(0, SAID, "tool_use"),), 3, 4)


def test_a_json_answer_is_read() -> None:
    assert _json_answer(ANSWER) == READ


def test_a_stream_and_a_json_answer_of_one_content_read_alike() -> None:
    assert _streamed(*message_events(ANSWER)) == READ


def test_an_answer_that_says_nothing_is_complete() -> None:
    for found in (_json_answer(_whole()), _streamed(*message_events(_whole()))):
        assert (found.complete, found.choices[0].message) == (True, Message("assistant"))


@pytest.mark.parametrize("body", [b'{"type":"error","error":{"type":"overloaded_error"}}', b"{}", b'{"content":7}'])
def test_an_answer_without_content_is_not_complete(body: bytes) -> None:
    found = _read(body)
    assert (found.complete, found.choices) == (False, ())


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff"])
def test_what_is_no_answer_is_none(body: bytes) -> None:
    assert Messages().read_response(body, "text/html") is None


def test_what_came_out_of_a_cache_is_part_of_the_prompt() -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 4}
    assert _json_answer({**_whole(_text("a")), "usage": usage}).prompt_tokens == 123


def test_tokens_that_the_upstream_does_not_give_are_none() -> None:
    found = _read(b'{"content":[],"usage":{"input_tokens":null}}')
    assert (found.prompt_tokens, found.completion_tokens) == (None, None)


def test_the_last_counts_of_a_stream_stand() -> None:
    events = message_events(_whole(_text("a")))
    events[-2]["usage"] = {"output_tokens": 9, "input_tokens": None}
    found = _streamed(*events)
    assert (found.prompt_tokens, found.completion_tokens) == (3, 9)


def test_blocks_whose_pieces_interleave_are_kept_apart() -> None:
    begun, _, *pieces = message_events(_whole(_text("abc"), _call(a=1)), cut=1)
    texts, calls = ([one for one in pieces if one.get("index") == place] for place in (0, 1))
    mixed = [one for pair in zip(texts, calls, strict=False) for one in pair] + calls[len(texts) :]
    assert _streamed(begun, *mixed, {"type": "message_stop"}).choices[0].message == Message(
        "assistant", "abc", (ToolCall("toolu_1", "f", '{"a":1}'),)
    )


def test_halves_of_a_character_in_two_pieces_make_it_whole() -> None:
    halves = [{"type": "text_delta", "text": half} for half in ("\ud83d", "\ude00")]
    deltas = [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in halves]
    assert _streamed(*deltas, {"type": "message_stop"}).choices[0].message.text == "😀"


def test_input_that_was_cut_is_kept_as_the_text_that_came() -> None:
    events = message_events(_whole(_call(a="long"), stop="max_tokens"), cut=5)
    events = [event for event in events if event.get("delta", {}).get("partial_json") != 'g"}']
    assert _streamed(*events).choices[0].message.tool_calls == (ToolCall("toolu_1", "f", '{"a": "lon'),)


@pytest.mark.parametrize(
    "events",
    [
        [],
        message_events(ANSWER)[:-1],
        [{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
        [*message_events(ANSWER)[:5], {"type": "error", "error": {}}, {"type": "message_stop"}],
    ],
    ids=["nothing", "no end", "only error", "error inside"],
)
def test_a_stream_without_a_sound_end_is_not_complete(events: list[dict[str, Any]]) -> None:
    assert not _streamed(*events).complete


def test_a_broken_event_makes_a_stream_unsound() -> None:
    assert not _read(b"data: {\n\n" + stream(*message_events(ANSWER)), SSE).complete


_texts = st.text('aé😀"\\ \n', min_size=1, max_size=9)
_inputs = st.dictionaries(
    _texts, st.integers() | _texts | st.lists(st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
)
_blocks = st.builds(_text, _texts) | st.builds(lambda given: _call(x=given), _inputs) | st.just(THOUGHT)


@given(st.lists(_blocks, max_size=4), st.booleans(), st.integers(1, 9))
def test_an_answer_reads_as_it_will_when_a_client_sends_it_back(
    content: list[dict[str, Any]], streamed: bool, cut: int
) -> None:
    answer = _whole(*content)
    read = _streamed(*message_events(answer, cut)) if streamed else _json_answer(answer)
    asked = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": content}]}
    again = Messages().read_request(json.dumps(asked).encode())
    assert again is not None
    assert again.messages[1] == read.choices[0].message


@given(st.data())
def test_however_a_stream_is_cut_short_it_is_never_read_as_another_answer(data: st.DataObject) -> None:
    body = stream(*message_events(_whole(_text("Héllo 😀 world"))))
    cut = _read(body[: data.draw(st.integers(0, len(body)))], SSE)
    text = cut.choices[0].message.text if cut.choices else ""
    assert text == "Héllo 😀 world" if cut.complete else "Héllo 😀 world".startswith(text)


@given(st.binary(max_size=80), st.sampled_from([JSON, SSE, "", "text/plain"]))
def test_whatever_bytes_come_nothing_raises(body: bytes, content_type: str) -> None:
    Messages().read_response(body, content_type)
    Messages().read_response(b"data: " + body, content_type)
