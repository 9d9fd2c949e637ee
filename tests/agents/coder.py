"""An upstream that plays the model of a coding agent: it calls one tool, then another, then answers.

It speaks Responses, Messages and chat completions, streamed or not, in the forms that the programs' own readers insist
on. Its ids depend on what was asked alone, so that two runs that ask the same get the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.tfgrpo.dialects.events import message_events, stream
from tests.upstreams import Seen, Step, answer, chunk, chunked_head, event

Body = dict[str, Any]

ANSWER = "The final answer is four."
SHELLS: dict[str, Body] = {
    "exec_command": {"cmd": "echo one"},
    "shell_command": {"command": "echo one"},
    "shell": {"command": ["bash", "-lc", "echo one"]},
    "Bash": {"command": "echo one", "description": "Say one"},
    "bash": {"command": "echo one", "description": "Say one"},
    "add": {"a": 1, "b": 2},
}
"""The tools that programs offer, by name, with the arguments that make each of them do something harmless."""

ROUNDS = 2


def speaks(seen: Seen) -> Iterable[Step]:
    """The script."""
    path = seen.target.split("?")[0]
    if seen.line.startswith("POST"):
        for end, make in {"/responses": _responses, "/messages": _messages, "/chat/completions": _chat}.items():
            if path.endswith(end):
                return make(seen.json)
        if path.endswith("/count_tokens"):
            return [answer({"input_tokens": 7})]
    if path.endswith("/models"):
        return [answer({"object": "list", "data": [], "has_more": False, "first_id": None, "last_id": None})]
    return [answer({"error": {"message": "none", "type": "not_found"}}, status=404)]


def _name(*asked: object) -> str:
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:20]


def _tool(offered: Iterable[Any], done: int) -> str | None:
    """Return the tool to call next."""
    names = {one for one in offered if isinstance(one, str)}
    return None if done >= ROUNDS else next((name for name in SHELLS if name in names), None)


def _responses(body: Body) -> Iterator[Step]:
    items = body["input"] if isinstance(body["input"], list) else []
    done = sum(1 for one in items if str(one.get("type", "")).endswith("_output"))
    name = _name("responses", body["model"], len(items), done, body.get("previous_response_id"))
    tool = _tool((one.get("name") for one in body.get("tools") or ()), done)
    said = {"type": "output_text", "text": ANSWER, "annotations": [], "logprobs": []}
    item: Body = {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": "completed", "content": [said]}
    if tool is not None and not body.get("previous_response_id"):
        item = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "name": tool}
        item |= {"arguments": json.dumps(SHELLS[tool]), "status": "completed"}
    counts: Body = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    counts |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": f"resp_{name}", "object": "response", "created_at": 1_700_000_000, "status": "completed"}
    whole |= {"model": body["model"], "instructions": body.get("instructions"), "output": [item], "usage": counts}
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return iter([answer(whole)]) if not body.get("stream") else _streamed(stream(*_response_events(whole, item)))


def _response_events(whole: Body, item: Body) -> list[Body]:
    place = {"output_index": 0, "item_id": item["id"]}
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    if item["type"] == "message":
        part = item["content"][0]
        at = {**place, "content_index": 0}
        empty: Body = {**item, "status": "in_progress", "content": []}
        between = [
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []},
            {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []},
            {"type": "response.content_part.done", **at, "part": part},
        ]
    else:
        empty = {**item, "status": "in_progress", "arguments": ""}
        given = item["arguments"]
        between = [
            {"type": "response.function_call_arguments.delta", **place, "delta": given},
            {"type": "response.function_call_arguments.done", **place, "arguments": given, "name": item["name"]},
        ]
    events: list[Body] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        *between,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return [{**one, "sequence_number": number} for number, one in enumerate(events)]


def _messages(body: Body) -> Iterator[Step]:
    parts = [part for one in body["messages"] if isinstance(one["content"], list) for part in one["content"]]
    done = sum(1 for part in parts if part.get("type") == "tool_result")
    name = _name("messages", body["model"], len(body["messages"]), done, bool(body.get("tools")))
    tool = _tool((one.get("name") for one in body.get("tools") or ()), done)
    content: list[Body] = [{"type": "text", "text": ANSWER}]
    if tool is not None:
        content = [{"type": "tool_use", "id": f"toolu_{name}", "name": tool, "input": SHELLS[tool]}]
    whole = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": body["model"], "content": content}
    whole |= {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    whole |= {"usage": {"input_tokens": 3, "output_tokens": 2}}
    return iter([answer(whole)]) if not body.get("stream") else _streamed(stream(*message_events(whole)))


def _chat(body: Body) -> Iterator[Step]:
    done = sum(1 for one in body["messages"] if one["role"] == "tool")
    name = _name("chat", body["model"], len(body["messages"]), done)
    tool = _tool((one.get("function", {}).get("name") for one in body.get("tools") or ()), done)
    said: Body = {"role": "assistant", "content": ANSWER}
    if tool is not None:
        call = {"id": f"call_{name}", "type": "function", "index": 0}
        called = {**call, "function": {"name": tool, "arguments": json.dumps(SHELLS[tool])}}
        said = {"role": "assistant", "content": None, "tool_calls": [called]}
    head = {"id": f"chatcmpl-{name}", "created": 1_700_000_000, "model": body["model"]}
    counts = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    finish = "tool_calls" if tool else "stop"
    if not body.get("stream"):
        choice = {"index": 0, "message": said, "finish_reason": finish}
        return iter([answer({**head, "object": "chat.completion", "choices": [choice], "usage": counts})])
    head["object"] = "chat.completion.chunk"
    deltas: list[tuple[Body, str | None]] = [(said, None), ({}, finish)]
    events = [{**head, "choices": [{"index": 0, "delta": one, "finish_reason": why}]} for one, why in deltas]
    events.append({**head, "choices": [], "usage": counts})
    return _streamed(b"".join(event(one) for one in events) + event("[DONE]"))


def _streamed(events: bytes) -> Iterator[Step]:
    return iter([chunked_head(), chunk(events), chunk(b"")])
