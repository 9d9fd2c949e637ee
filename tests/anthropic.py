"""A provider that speaks Anthropic's Messages API over raw TCP, for the tests of what is translated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.upstreams import Seen, Step, answer, chunk, chunked_head

USAGE = {"input_tokens": 3, "output_tokens": 2}


def messages(seen: Seen) -> Iterator[Step]:
    """The script: the model's name says what happens; else the answer holds the system text that arrived."""
    asked = seen.json
    model = asked["model"]
    if model.isdecimal():
        said = {"type": "error", "error": {"type": "said_error", "message": f"no, {seen.headers.get('x-api-key')}"}}
        yield answer(said, status=int(model), headers=[("retry-after", "7"), ("x-own", "1"), ("request-id", "req_1")])
    elif model == "hold":
        yield "hold"
    elif asked.get("stream"):
        yield from _streamed(asked, model)
    elif asked.get("tools"):
        yield answer(_message(model, {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "x"}}))
    else:
        yield answer(_message(model, {"type": "text", "text": _text(asked)}))


def _streamed(asked: dict[str, Any], model: str) -> Iterator[Step]:
    yield chunked_head()
    yield _event("message_start", message={**_message(model), "stop_reason": None})
    if model == "refuse-first":
        yield _event("error", error={"type": "overloaded_error", "message": "too busy"})
        yield chunk(b"")
        return
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield from (_delta(word) for word in ("one ", _text(asked)))
    if model in ("cut-late", "hold-late"):
        yield "close" if model == "cut-late" else "hold"
    if model == "refuse-late":
        yield _event("error", error={"type": "overloaded_error", "message": "too busy"})
        yield chunk(b"")
        return
    yield _event("content_block_stop", index=0)
    yield _event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 2})
    yield _event("message_stop")
    yield chunk(b"")


def _text(asked: dict[str, Any]) -> str:
    system = asked.get("system") or []
    return system if isinstance(system, str) else " ".join(part["text"] for part in system)


def _message(model: str, *content: dict[str, Any]) -> dict[str, Any]:
    stop = "tool_use" if any(part["type"] == "tool_use" for part in content) else "end_turn"
    of = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": list(content)}
    return {**of, "stop_reason": stop, "stop_sequence": None, "usage": USAGE}


def _event(kind: str, **data: Any) -> bytes:
    return chunk(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())


def _delta(text: str) -> bytes:
    return _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
