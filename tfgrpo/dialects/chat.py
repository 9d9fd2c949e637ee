"""Chat completions: the few fields we need of a request, and the answer, put together when it was a stream.

A lens and no model of the API: unknown fields are passed over, a field of the wrong type counts as absent, and no
bytes make it raise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tfgrpo.dialects import json_reading as read
from tfgrpo.dialects import sse
from tfgrpo.types import Choice, Message, Request, Response, ToolCall

_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Parts that are no part of the answer, as `reasoning_content` beside it is not: clients rarely send them back."""

_MOST_CHOICES: Final = 128
"""What the API allows `n` to be."""


class Chat:
    """`POST /v1/chat/completions`."""

    name: Final = "chat"

    def read_request(self, body: bytes) -> Request | None:
        """Return what we read of a request; None when it is no JSON object with a list of messages."""
        fields = read.mapping(body)
        if fields is None or not isinstance(fields.get("messages"), list):
            return None
        metadata = fields.get("metadata")
        n = read.count(fields.get("n"))
        return Request(
            model=read.text_or_none(fields.get("model")),
            messages=tuple(_message(one) for one in read.mappings(fields["messages"])),
            stream=fields.get("stream") is True,
            n=min(max(n or 1, 1), _MOST_CHOICES),
            session_id=read.text_or_none(metadata.get("session_id")) if isinstance(metadata, dict) else None,
        )

    def read_response(self, body: bytes, content_type: str) -> Response | None:
        """Return what we read of a response; None when it is neither JSON nor a stream of events."""
        if "event-stream" in content_type.lower() or (not content_type and sse.looks_like_events(body)):
            return _assembled(body)
        fields = read.mapping(body)
        if fields is None:
            return None
        choices = tuple(_choice(place, one) for place, one in enumerate(read.mappings(fields.get("choices"))))
        return _response(fields, fields.get("usage"), choices, complete=bool(choices))


def _choice(place: int, fields: Mapping[str, Any]) -> Choice:
    index = read.count(fields.get("index"))
    message = fields.get("message")
    return Choice(
        place if index is None else index,
        _message(message if isinstance(message, dict) else {}, role="assistant"),
        read.text_or_none(fields.get("finish_reason")),
    )


def _response(fields: Mapping[str, Any], usage: Any, choices: tuple[Choice, ...], *, complete: bool) -> Response:
    tokens = usage if isinstance(usage, dict) else {}
    return Response(
        id=read.text_or_none(fields.get("id")),
        choices=choices,
        prompt_tokens=read.count(tokens.get("prompt_tokens")),
        completion_tokens=read.count(tokens.get("completion_tokens")),
        complete=complete,
    )


def _message(fields: Mapping[str, Any], *, role: str = "") -> Message:
    calls = [_tool_call(one) for one in read.mappings(fields.get("tool_calls"))]
    legacy = fields.get("function_call")
    if isinstance(legacy, dict):
        calls.append(ToolCall("", read.text(legacy.get("name")), read.text(legacy.get("arguments"))))
    return Message(
        role=read.text(fields.get("role")) or role,
        text=_content(fields.get("content")) or read.text(fields.get("refusal")),
        tool_calls=tuple(calls),
        tool_call_id=read.text_or_none(fields.get("tool_call_id")),
    )


def _tool_call(fields: Mapping[str, Any]) -> ToolCall:
    """Read a call of a function, or of a custom tool, whose arguments are called `input`."""
    function = fields.get("function") or fields.get("custom")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments", function.get("input"))
    if isinstance(arguments, dict):
        # Some local servers send the object itself where the API has its text.
        arguments = _canonical(arguments)
    return ToolCall(read.text(fields.get("id")), read.text(function.get("name")), read.text(arguments))


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(_part(one) for one in read.mappings(content))


def _part(part: Mapping[str, Any]) -> str:
    """The text of a part; for an image, a sound or a file a note that tells two of them apart."""
    kind = read.text(part.get("type"))
    if kind in _TEXT_PARTS:
        return read.text(part.get("text"))
    if kind in _THOUGHTS:
        return ""
    if kind == "refusal":
        return read.text(part.get("refusal"))
    digest = hashlib.sha256(_canonical(part).encode()).hexdigest()[:12]
    return f"[{kind or 'part'} {digest}]"


def _canonical(value: Mapping[str, Any]) -> str:
    """Return one spelling for all spellings of a value: some clients write their history anew on each turn."""
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:
        # Writing needs a few levels more of the stack than reading did.
        return ""


class _Growing:
    """One choice of a stream as its pieces come in."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: dict[int, list[str]] = {}
        self.finish: str | None = None

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Add what one chunk says of this choice."""
        delta = chunk.get("delta")
        if isinstance(delta, dict):
            self.texts.append(_content(delta.get("content")))
            self.refusals.append(read.text(delta.get("refusal")))
            for call in read.mappings(delta.get("tool_calls")):
                self._take_call(call)
            if isinstance(delta.get("function_call"), dict):
                self._take_call({"index": 0, "function": delta["function_call"]})
        self.finish = read.text_or_none(chunk.get("finish_reason")) or self.finish

    def _take_call(self, call: Mapping[str, Any]) -> None:
        """Pieces belong together by index; without one by id, else to the newest call."""
        piece = _tool_call(call)
        index = read.count(call.get("index"))
        if index is None:
            known = [i for i, (id_, _, _) in self.calls.items() if id_ == piece.id] if piece.id else list(self.calls)
            index = known[-1] if known else max(self.calls, default=-1) + 1
        so_far = self.calls.setdefault(index, ["", "", ""])
        so_far[0] = so_far[0] or piece.id
        so_far[1] += piece.name
        so_far[2] += piece.arguments

    def message(self) -> Message:
        """The message that the pieces make."""
        calls = tuple(ToolCall(*map(_paired, parts)) for _, parts in sorted(self.calls.items()))
        text = _paired("".join(self.texts) or "".join(self.refusals))
        return Message("assistant", text, calls)


def _assembled(body: bytes) -> Response:
    growing: dict[int, _Growing] = {}
    head: dict[str, Any] = {}
    usage: Any = None
    sound = done = False
    for sound, chunk in _chunks(body):
        if not sound:
            break
        if chunk is None:
            done = True
            break
        head = head or ({"id": chunk["id"]} if chunk.get("id") else {})
        usage = chunk.get("usage") or usage
        for one in read.mappings(chunk.get("choices")):
            growing.setdefault(read.count(one.get("index")) or 0, _Growing()).take(one)
    choices = tuple(Choice(index, one.message(), one.finish) for index, one in sorted(growing.items()))
    finished = bool(choices) and (done or all(choice.finish_reason for choice in choices))
    return _response(head, usage, choices, complete=sound and finished)


def _chunks(body: bytes) -> Iterator[tuple[bool, dict[str, Any] | None]]:
    """Yield (sound, chunk); the chunk is None at `[DONE]`. An error or a broken event is not sound."""
    for data in sse.data(body):
        if data.strip() == b"[DONE]":
            yield True, None
        elif data:
            chunk = read.mapping(data)
            yield chunk is not None and not chunk.get("error"), chunk


def _paired(text: str) -> str:
    """Put the halves of a surrogate pair together that arrived in two pieces."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text
