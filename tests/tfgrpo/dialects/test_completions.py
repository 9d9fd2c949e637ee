from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects.completions import Completions
from tfgrpo.types import Choice, Message, Request, Response

JSON, SSE = "application/json", "text/event-stream"


def _asked(prompt: Any, **fields: Any) -> Request:
    found = Completions().read_request(json.dumps({"prompt": prompt, **fields}).encode())
    assert found is not None
    return found


def _read(body: bytes, content_type: str = JSON) -> Response:
    found = Completions().read_response(body, content_type)
    assert found is not None
    return found


def _chunk(text: str, index: int = 0, finish: str | None = None) -> bytes:
    choice = {"text": text, "index": index, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "cmpl-1", "choices": [choice]}).encode() + b"\n\n"


def test_the_fields_we_need_are_read() -> None:
    found = _asked("Once", model="m", stream=True, n=2, best_of=3)
    assert found == Request("m", (Message("user", "Once"),), stream=True, n=2)


def test_of_several_prompts_the_first_is_the_task() -> None:
    assert _asked(["A", "B"]).messages == (Message("user", "A"),)


def test_prompts_of_tokens_leave_a_note_that_tells_them_apart() -> None:
    notes = {_asked(prompt).messages[0].text for prompt in ([1, 2], [1, 3], [[1, 2], [7]])}
    assert len(notes) == 2
    assert all(note.startswith("[tokens ") for note in notes)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"prompt":7}', b'{"prompt":null}', b"\xff"])
def test_what_is_no_request_of_this_api_is_none(body: bytes) -> None:
    assert Completions().read_request(body) is None


def test_a_json_answer_is_read() -> None:
    choices = [{"text": "a", "index": 0, "finish_reason": "stop"}, {"text": "b", "index": 1, "finish_reason": "length"}]
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    assert _read(json.dumps({"id": "cmpl-1", "choices": choices, "usage": usage}).encode()) == Response(
        "cmpl-1",
        (Choice(0, Message("assistant", "a"), "stop"), Choice(1, Message("assistant", "b"), "length")),
        3,
        4,
    )


def test_a_stream_is_put_together_choice_by_choice() -> None:
    body = _chunk("a") + _chunk("b", 1) + _chunk("A", 0, "stop") + _chunk("B", 1, "stop") + b"data: [DONE]\n\n"
    found = _read(body, SSE)
    assert [choice.message.text for choice in found.choices] == ["aA", "bB"]
    assert found.complete


def test_a_stream_without_its_end_is_not_complete() -> None:
    assert not _read(_chunk("a"), SSE).complete


def test_an_answer_without_choices_is_not_complete() -> None:
    assert not _read(b'{"error":{}}').complete


@given(st.binary(max_size=80), st.sampled_from([JSON, SSE, ""]))
def test_whatever_bytes_come_nothing_raises(body: bytes, content_type: str) -> None:
    Completions().read_request(body)
    Completions().read_response(body, content_type)
    Completions().read_response(b"data: " + body, content_type)
