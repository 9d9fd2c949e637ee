"""Chat completions: the few fields we need of a request, and the answer, put together when it was a stream.

A lens and no model of the API: unknown fields are passed over, a field of the wrong type counts as absent, and no
bytes make it raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from tfgrpo.dialects import chat_stream, chunks, parts, sse
from tfgrpo.dialects import json_reading as read
from tfgrpo.dialects.chat_stream import Growing, tool_call
from tfgrpo.types import Choice, Message, Request, Response, ToolCall


class Chat:
    """`POST /v1/chat/completions`."""

    name: Final = "chat"
    turn = True

    def read_request(self, body: bytes) -> Request | None:
        """Return what we read of a request; None when it is no JSON object with a list of messages."""
        usual = _usual(body)
        if usual is not None:
            return usual
        fields = read.mapping(body)
        if fields is None or not isinstance(fields.get("messages"), list):
            return None
        return Request(
            model=read.text_or_none(fields.get("model")),
            messages=tuple(_message(one) for one in read.mappings(fields["messages"])),
            stream=fields.get("stream") is True,
            n=read.choices(fields.get("n")),
            session_id=read.session(fields),
        )

    def read_response(self, body: bytes, content_type: str) -> Response | None:
        """Return what we read of a response; None when it is neither JSON nor a stream of events."""
        usual = chat_stream.usual(body) if sse.is_stream(body, content_type) else _usual_answer(body)
        return usual if usual is not None else chunks.answer(body, content_type, _choice, Growing)


class _Said(msgspec.Struct):
    """A message as the API has it, where nothing is of another type."""

    role: str
    content: str | list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    function_call: dict[str, Any] | None = None
    tool_call_id: str | None = None


class _Asked(msgspec.Struct):
    """The fields of a request that we read, where nothing is of another type. All others are passed over unread."""

    messages: list[_Said]
    model: str | None = None
    stream: bool | None = None
    n: int | None = None
    metadata: dict[str, Any] | None = None


class _Chosen(msgspec.Struct):
    """A choice of an answer."""

    message: _Said
    index: int | None = None
    finish_reason: str | None = None


class _Used(msgspec.Struct):
    """The tokens of an exchange."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Answered(msgspec.Struct):
    """The fields of a whole answer that we read, likewise."""

    choices: list[_Chosen]
    id: str | None = None
    usage: _Used | None = None


_ASKED: Final = msgspec.json.Decoder(_Asked, float_hook=float)
_ANSWERED: Final = msgspec.json.Decoder(_Answered, float_hook=float)
_NOTHING_USED: Final = _Used()


def _usual(body: bytes) -> Request | None:
    """Read a request that keeps to the API, at a quarter of the cost; None: it must be read field by field."""
    try:
        asked = _ASKED.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return Request(
        model=asked.model or None,
        messages=tuple([_said(one) for one in asked.messages]),
        stream=asked.stream is True,
        n=read.choices(asked.n),
        session_id=read.session({"metadata": asked.metadata}) if asked.metadata else None,
    )


def _usual_answer(body: bytes) -> Response | None:
    """Read a whole answer that keeps to the API, at half the cost; None: it must be read field by field."""
    try:
        answered = _ANSWERED.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    used = answered.usage or _NOTHING_USED
    return Response(
        id=answered.id or None,
        choices=tuple([_chosen(place, one) for place, one in enumerate(answered.choices)]),
        prompt_tokens=read.count(used.prompt_tokens),
        completion_tokens=read.count(used.completion_tokens),
        complete=bool(answered.choices),
    )


def _chosen(place: int, one: _Chosen) -> Choice:
    index = read.count(one.index)
    message = _said(one.message)
    if not message.role:
        message = structs.replace(message, role="assistant")
    return Choice(place if index is None else index, message, one.finish_reason or None)


def _said(one: _Said) -> Message:
    if isinstance(one.content, str) and one.content and one.tool_calls is None and one.function_call is None:
        return Message(one.role, one.content, (), one.tool_call_id or None)
    return _message(structs.asdict(one))


def _choice(place: int, fields: Mapping[str, Any]) -> Choice:
    message = fields.get("message")
    return Choice(
        chunks.index(fields, place),
        _message(message if isinstance(message, dict) else {}, role="assistant"),
        read.text_or_none(fields.get("finish_reason")),
    )


def _message(fields: Mapping[str, Any], *, role: str = "") -> Message:
    calls = [tool_call(one) for one in read.mappings(fields.get("tool_calls"))]
    legacy = fields.get("function_call")
    if isinstance(legacy, dict):
        calls.append(ToolCall("", read.text(legacy.get("name")), read.text(legacy.get("arguments"))))
    return Message(
        role=read.text(fields.get("role")) or role,
        text=parts.text(fields.get("content")) or read.text(fields.get("refusal")),
        tool_calls=tuple(calls),
        tool_call_id=read.text_or_none(fields.get("tool_call_id")),
    )
