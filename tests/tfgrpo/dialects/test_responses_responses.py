from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tfgrpo.dialects.events import response_events, stream
from tfgrpo.dialects.responses import Responses
from tfgrpo.types import Choice, Message, Response, ToolCall

JSON, SSE = "application/json", "text/event-stream"
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}


def _said(text: str) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts}


def _whole(*output: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    return {"id": "resp_1", "object": "response", "status": status, "output": list(output), "usage": usage, **more}


def _read(body: bytes, content_type: str = JSON) -> Response:
    found = Responses().read_response(body, content_type)
    assert found is not None
    return found


def _json_answer(response: dict[str, Any]) -> Response:
    return _read(json.dumps(response).encode())


ANSWER = _whole(REASONING, _said("Hello world"), CALL)
READ = Response(
    "resp_1",
    (Choice(0, Message("assistant", "Hello world", (ToolCall("c1", "f", '{"a":1}'),)), "completed"),),
    3,
    4,
    resumable=True,
    references=("fc_1",),
)


def test_a_json_answer_is_read() -> None:
    assert _json_answer(ANSWER) == READ


def test_an_answer_that_names_no_status_is_complete() -> None:
    assert _read(b'{"id":"resp_1","output":[]}').complete


def test_an_answer_cut_by_a_limit_is_one_and_says_why() -> None:
    found = _json_answer(_whole(_said("Hel"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert (found.complete, found.choices[0].finish_reason) == (True, "max_output_tokens")


@pytest.mark.parametrize("status", ["failed", "cancelled", "queued", "in_progress", None, []])
def test_another_status_is_no_complete_answer(status: Any) -> None:
    assert not _json_answer(_whole(status=status)).complete


def test_an_answer_without_output_is_not_complete() -> None:
    assert not _read(b'{"error":{"message":"queue full"}}').complete


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff"])
def test_what_is_no_answer_is_none(body: bytes) -> None:
    assert Responses().read_response(body, "text/html") is None


def test_a_stream_and_a_json_answer_of_one_content_read_alike() -> None:
    assert _read(stream(*response_events(ANSWER)), SSE) == READ


@pytest.mark.parametrize("after", [b"data: [DONE]\n\n", b": bye\n\n"])
def test_what_follows_the_end_does_not_matter(after: bytes) -> None:
    assert _read(stream(*response_events(ANSWER)) + after, SSE) == READ


def test_an_end_that_carries_no_output_is_filled_with_the_items_that_came() -> None:
    events = response_events(ANSWER)
    events[-1]["response"] = {**ANSWER, "output": []}
    assert _read(stream(*events), SSE) == READ


def test_items_that_never_ended_are_told_by_their_texts() -> None:
    events = [event for event in response_events(ANSWER) if event["type"] != "response.output_item.done"]
    events[-1]["response"] = {**ANSWER, "output": []}
    assert _read(stream(*events), SSE).choices[0].message.text == "Hello world"


def test_a_stream_that_was_cut_by_a_limit_is_complete() -> None:
    answer = _whole(_said("Hel"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    found = _read(stream(*response_events(answer, end="response.incomplete")), SSE)
    assert (found.complete, found.choices[0].finish_reason) == (True, "max_output_tokens")


@pytest.mark.parametrize(
    "events",
    [
        [],
        response_events(ANSWER)[:-1],
        response_events(_whole(_said("a"), status="failed"), end="response.failed"),
        [*response_events(ANSWER)[:-1], {"type": "error", "code": "server_error", "message": "queue full"}],
    ],
    ids=["nothing", "no end", "failed", "error"],
)
def test_a_stream_without_a_sound_end_is_not_complete(events: list[dict[str, Any]]) -> None:
    assert not _read(stream(*events), SSE).complete


def test_a_stream_that_broke_off_still_tells_its_id() -> None:
    assert _read(stream(*response_events(ANSWER)[:3]), SSE).id == "resp_1"


def test_a_later_request_may_continue_an_answer_by_its_id() -> None:
    assert _json_answer(ANSWER).resumable


def test_an_answer_may_be_referred_to_by_its_last_item_and_its_conversation() -> None:
    found = _json_answer(_whole(REASONING, _said("a"), conversation={"id": "conv_1"}))
    assert found.references == ("conv_1", "msg_1")


_text = st.text("aé😀 \n", min_size=1, max_size=9)
_call = st.builds(lambda arguments: {**CALL, "arguments": json.dumps(arguments)}, st.dictionaries(_text, st.integers()))
_output = st.lists(st.builds(_said, _text) | _call | st.just(REASONING), min_size=1, max_size=4)


@given(_output, st.booleans())
def test_an_answer_reads_as_it_will_when_a_client_sends_its_items_back(
    output: list[dict[str, Any]], streamed: bool
) -> None:
    answer = _whole(*output)
    read = _read(stream(*response_events(answer)), SSE) if streamed else _json_answer(answer)
    asked = {"input": [{"role": "user", "content": "hi"}, *output, {"role": "user", "content": "and?"}]}
    again = Responses().read_request(json.dumps(asked).encode())
    assert again is not None
    said = read.choices[0].message
    assert again.messages[1:-1] == ((said,) if said.text or said.tool_calls else ())


@given(st.data())
def test_however_a_stream_is_cut_short_it_is_never_read_as_another_answer(data: st.DataObject) -> None:
    body = stream(*response_events(_whole(_said("Héllo 😀 world"))))
    cut = _read(body[: data.draw(st.integers(0, len(body)))], SSE)
    text = cut.choices[0].message.text if cut.choices else ""
    assert text == "Héllo 😀 world" if cut.complete else "Héllo 😀 world".startswith(text)


@given(st.binary(max_size=80), st.sampled_from([JSON, SSE, "", "text/plain"]))
def test_whatever_bytes_come_nothing_raises(body: bytes, content_type: str) -> None:
    Responses().read_response(body, content_type)
    Responses().read_response(b"data: " + body, content_type)
