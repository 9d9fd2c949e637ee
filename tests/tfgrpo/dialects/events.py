"""Streams for tests, as upstreams send them."""

from __future__ import annotations

import json
from typing import Any


def stream(*events: dict[str, Any]) -> bytes:
    """Named events, as Responses and Messages have them."""
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode()) for event in events
    )


def message_events(message: dict[str, Any], cut: int = 3) -> list[dict[str, Any]]:
    """The events of a streamed message of the Messages API, each text and input in pieces of `cut` characters."""
    usage = message.get("usage", {})
    head = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        begun, pieces = _begun(block, cut)
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in pieces]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": message.get("stop_reason"), "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


def _begun(block: dict[str, Any], cut: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in _cut(block["text"], cut)]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _cut(block["thinking"], cut)]
        return {**block, "thinking": ""}, [*deltas, {"type": "signature_delta", "signature": "s"}]
    raw = json.dumps(block["input"], ensure_ascii=False) if block["input"] else ""
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in _cut(raw, cut)]


def response_events(response: dict[str, Any], *, end: str = "response.completed") -> list[dict[str, Any]]:
    """The events of a streamed response of the Responses API, texts word by word, with the end that carries it all."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events = [{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}]
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item_id": item.get("id")}
        events.append({"type": "response.output_item.added", **place, "item": {**item, "content": []}})
        for part in item.get("content", ()):
            words = part.get("text", "").split(" ")
            events += [
                {"type": "response.output_text.delta", **place, "delta": f"{' ' if number else ''}{word}"}
                for number, word in enumerate(words)
            ]
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": end, "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
