"""A chat's answer as it streams: what its events hold, put together.

Like all reading here it takes what comes: what keeps to the API by its type, anything else field by field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tfgrpo.dialects import json_reading as read
from tfgrpo.dialects import parts
from tfgrpo.types import Choice, Message, Response, ToolCall

_BETWEEN: Final = b"\n\ndata: "
_FIRST: Final = b"data: "
_DONE: Final = b"[DONE]"


class _Delta(msgspec.Struct):
    """What an event adds to a choice, where nothing is of another type."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    function_call: dict[str, Any] | None = None


class _Piece(msgspec.Struct):
    """What an event says of a choice, likewise."""

    delta: _Delta | None = None
    index: int | None = None
    finish_reason: str | None = None


class _Event(msgspec.Struct):
    """The fields of an event that we read, likewise."""

    choices: list[_Piece] | None = None
    id: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_EVENT: Final = msgspec.json.Decoder(_Event, float_hook=float)


def usual(body: bytes) -> Response | None:
    """Read a whole stream that keeps to the API, at a third of the cost; None: it must be read field by field."""
    events = _events(body)
    if events is None or any(event.error for event in events):
        return None
    growing: dict[int, Growing] = {}
    finish: dict[int, str] = {}
    for event in events:
        for piece in event.choices or ():
            number = read.count(piece.index) or 0
            if number not in growing:
                growing[number], finish[number] = Growing(), ""
            finish[number] = piece.finish_reason or finish[number]
            if (delta := piece.delta) is not None:
                growing[number].add(
                    delta.content or "", delta.refusal or "", delta.tool_calls or (), delta.function_call
                )
    usage = next((event.usage for event in reversed(events) if event.usage), {})
    return Response(
        id=next((event.id for event in events if event.id), None),
        choices=tuple([Choice(at, growing[at].message(), finish[at] or None) for at in sorted(growing)]),
        prompt_tokens=read.count(usage.get("prompt_tokens")),
        completion_tokens=read.count(usage.get("completion_tokens")),
        complete=bool(growing),
    )


def _events(body: bytes) -> list[_Event] | None:
    """The events of a stream that ends with `[DONE]`, each of one line of data."""
    whole = body.rstrip(b"\n")
    lines = whole.removeprefix(_FIRST).split(_BETWEEN)
    if not whole.startswith(_FIRST) or lines.pop() != _DONE or whole.count(b"\n") != 2 * len(lines) or b"\r" in whole:
        return None
    try:
        return [_EVENT.decode(line) for line in lines]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def tool_call(fields: Mapping[str, Any]) -> ToolCall:
    """Read a call of a function, or of a custom tool, whose arguments are called `input`."""
    function = fields.get("function") or fields.get("custom")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments", function.get("input"))
    if isinstance(arguments, dict):
        # Some local servers send the object itself where the API has its text.
        arguments = parts.compact(arguments)
    return ToolCall(read.text(fields.get("id")), read.text(function.get("name")), read.text(arguments))


class Growing:
    """One choice of a stream as its pieces come in."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: dict[int, list[str]] = {}

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Add what one chunk says of this choice."""
        delta = chunk.get("delta")
        if isinstance(delta, dict):
            legacy = delta.get("function_call")
            self.add(
                parts.text(delta.get("content")),
                read.text(delta.get("refusal")),
                read.mappings(delta.get("tool_calls")),
                legacy if isinstance(legacy, dict) else None,
            )

    def add(
        self, text: str, refusal: str, calls: Sequence[Mapping[str, Any]], legacy: Mapping[str, Any] | None
    ) -> None:
        """Add what a delta holds. `legacy`: a piece of the one call of a function, as it was told before tools."""
        self.texts.append(text)
        self.refusals.append(refusal)
        for call in calls:
            self._take_call(call)
        if legacy is not None:
            self._take_call({"index": 0, "function": legacy})

    def _take_call(self, call: Mapping[str, Any]) -> None:
        """Pieces belong together by index; without one by id, else to the newest call."""
        piece = tool_call(call)
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
        calls = tuple(ToolCall(*map(parts.paired, call)) for _, call in sorted(self.calls.items()))
        text = parts.paired("".join(self.texts) or "".join(self.refusals))
        return Message("assistant", text, calls)
