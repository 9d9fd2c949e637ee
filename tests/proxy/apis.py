"""Each API as a client and an upstream of it see it: requests, further turns, answers, streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.tfgrpo.dialects.events import message_events, response_events, stream
from tests.upstreams import Seen, Step, answer, chunk, chunked_head, completion, event, streamed

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Api:
    """`first` is a request, `then` the next turn after it and its answer, `prior` what it says before the question."""

    name: str
    path: str
    first: Body
    then: Callable[[Body, Body], Body]
    prior: Callable[[Body], str]


def _user(text: str) -> Body:
    return {"role": "user", "content": text}


def _next_chat(asked: Body, answered: Body) -> Body:
    said = answered["choices"][0]["message"]
    return {**asked, "messages": [*asked["messages"], said, _user("and 3+3?")]}


def _next_message(asked: Body, answered: Body) -> Body:
    said = {"role": "assistant", "content": answered["content"]}
    return {**asked, "messages": [*asked["messages"], said, _user("and 3+3?")]}


def _next_response(asked: Body, answered: Body) -> Body:
    return {**asked, "input": [_user(asked["input"]), *answered["output"], _user("and 3+3?")]}


def _next_completion(asked: Body, answered: Body) -> Body:
    return {**asked, "prompt": f"{asked['prompt']}{answered['choices'][0]['text']}\nand 3+3?"}


_BASE = {"model": "m", "unknown": 1}
CHAT = Api(
    "chat",
    "/v1/chat/completions",
    {**_BASE, "messages": [_user("2+2?")]},
    _next_chat,
    lambda body: str(body["messages"][0]["content"]),
)
RESPONSES = Api("responses", "/v1/responses", {**_BASE, "input": "2+2?"}, _next_response, lambda b: b["instructions"])
MESSAGES = Api(
    "messages",
    "/v1/messages",
    {**_BASE, "max_tokens": 9, "messages": [_user("2+2?")]},
    _next_message,
    lambda body: str(body["system"]),
)
COMPLETIONS = Api(
    "completions", "/v1/completions", {**_BASE, "prompt": "2+2="}, _next_completion, lambda b: b["prompt"]
)
ALL = (CHAT, RESPONSES, MESSAGES, COMPLETIONS)
CONVERSATIONS = (CHAT, RESPONSES, MESSAGES)


def speaks(seen: Seen) -> Iterator[Step]:
    """The script of an upstream that speaks all of them. Each answer has an id and a text of its own."""
    number, path = int(seen.at * 1e6), seen.target.split("?")[0]
    asked = seen.json if seen.body else {}
    make = {
        "/v1/chat/completions": _chat_answer,
        "/v1/responses": _response_answer,
        "/v1/messages": _message_answer,
        "/v1/completions": _completion_answer,
    }.get(path)
    if make is None:
        yield answer({"input_tokens": len(seen.body)})
        return
    whole, events = make(number, asked)
    if not asked.get("stream"):
        yield answer(whole)
    elif isinstance(events, bytes):
        yield from (chunked_head(), chunk(events), chunk(b""))
    else:
        yield from events


def _chat_answer(number: int, _: Body) -> tuple[Body, bytes | list[Step]]:
    id_, text = f"chatcmpl-{number}", f"four, says {number}"
    return completion(text, id_=id_), streamed(text, id_=id_)


def _response_answer(number: int, asked: Body) -> tuple[Body, bytes]:
    text = {"type": "output_text", "text": f"four, says {number}", "annotations": []}
    output: list[Body] = [{"type": "reasoning", "id": f"rs_{number}", "summary": []}]
    output.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [text]})
    if asked.get("tools"):
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        output[1:] = [{**call, "name": asked["tools"][0]["name"], "arguments": "{}"}]
    whole = {
        "id": f"resp_{number}",
        "object": "response",
        "status": "completed",
        "instructions": asked.get("instructions"),
        "output": output,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    return whole, stream(*response_events(whole))


def _message_answer(number: int, asked: Body) -> tuple[Body, bytes]:
    content: list[Body] = [{"type": "text", "text": f"four, says {number}"}]
    if asked.get("tools"):
        content.append({"type": "tool_use", "id": f"toolu_{number}", "name": asked["tools"][0]["name"], "input": {}})
    whole = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    return whole, stream(*message_events(whole))


def _completion_answer(number: int, _: Body) -> tuple[Body, bytes]:
    head = {"id": f"cmpl-{number}", "object": "text_completion"}
    choice = {"text": f" four, says {number}", "index": 0, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    events: list[Body] = [{**head, "choices": [choice]}, {**head, "choices": [], "usage": usage}]
    return {**head, "choices": [choice], "usage": usage}, b"".join(event(one) for one in events) + event("[DONE]")


def final(api: Api, body: bytes) -> Body:
    """The answer that a client makes of a stream, for the APIs whose end carries it or whose text is all we need."""
    events = [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: {")]
    if api is RESPONSES:
        whole: Body = events[-1]["response"]
        return whole
    if api is MESSAGES:
        texts = [one["delta"]["text"] for one in events if one["type"] == "content_block_delta"]
        return {"content": [{"type": "text", "text": "".join(texts)}]}
    words = [one["choices"][0]["delta"].get("content", "") for one in events]
    return {"choices": [{"message": {"role": "assistant", "content": "".join(words)}}]}
