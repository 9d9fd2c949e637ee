"""Responses: items become the normal form that all APIs share, instructions a system message in front.

What the model said in a row, texts and calls of tools that the client runs, is one message: so an answer reads as it
will when a client sends its items back. Reasoning and the provider's own tools are passed over. A stream ends with an
event that carries the whole response; without one it is put together from what came. A lens and no model of the API,
like the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from tfgrpo.dialects import json_reading as read
from tfgrpo.dialects import parts, sse
from tfgrpo.types import Choice, Message, Request, Response, ToolCall

_ENDS: Final = {"response.completed": True, "response.incomplete": True, "response.failed": False}
"""The events that end a stream, and whether what they carry is an answer. Cut by a limit, it is one."""

_ANSWERS: Final = ("completed", "incomplete")
_LAST: Final = 3
"""How many of the last events may hold the end: some servers say `[DONE]` after it."""


class Responses:
    """`POST /v1/responses`."""

    name: Final = "responses"
    turn = True

    def read_request(self, body: bytes) -> Request | None:
        """Return what we read of a request; None when it is no JSON object, or its input is no text and no list."""
        fields = read.mapping(body)
        if fields is None or not isinstance(fields.get("input", ""), str | list):
            return None
        system = read.text(fields.get("instructions"))
        asked = _messages(fields.get("input", []))
        return Request(
            model=read.text_or_none(fields.get("model")),
            messages=(Message("system", system), *asked) if system else tuple(asked),
            stream=fields.get("stream") is True,
            previous_response_id=read.text_or_none(fields.get("previous_response_id")),
            references=(*_stored(fields), *_references(fields.get("input"))),
            session_id=read.session(fields),
        )

    def read_response(self, body: bytes, content_type: str) -> Response | None:
        """Return what we read of a response; None when it is neither JSON nor a stream of events."""
        if sse.is_stream(body, content_type):
            return _assembled([data for data in sse.data(body) if data])
        fields = read.mapping(body)
        if fields is None:
            return None
        status = fields.get("status", _ANSWERS[0])
        return _response(fields, complete=status in _ANSWERS and isinstance(fields.get("output"), list))


def _messages(asked: str | list[Any]) -> Iterator[Message]:
    if isinstance(asked, str):
        yield Message("user", asked)
        return
    read_items = (message for message in map(_message, read.mappings(asked)) if message is not None)
    for answered, some in groupby(read_items, lambda message: message.role == "assistant"):
        if answered:
            yield _joined(some)
        else:
            yield from some


def _joined(messages: Iterable[Message]) -> Message:
    some = list(messages)
    calls = tuple(call for message in some for call in message.tool_calls)
    return Message("assistant", "".join(message.text for message in some), calls)


def _message(item: Mapping[str, Any]) -> Message | None:
    """Read one item; None for what is no part of the conversation."""
    role = read.text(item.get("role"))
    if role:
        return Message(role, parts.text(item.get("content")))
    kind, call_id = read.text(item.get("type")), read.text_or_none(item.get("call_id"))
    if call_id is None:
        return None
    if kind.endswith("_output"):
        output = item.get("output")
        return Message("tool", parts.part(output) if isinstance(output, dict) else parts.text(output), (), call_id)
    return Message("assistant", "", (ToolCall(call_id, read.text(item.get("name")) or kind, _arguments(item)),))


def _arguments(item: Mapping[str, Any]) -> str:
    """The arguments of a function, the input of a custom tool, or the action of a tool that the API defines."""
    given = next((item[name] for name in ("arguments", "input", "action", "operation") if item.get(name)), "")
    return given if isinstance(given, str) else parts.compact(given)


def _references(asked: Any) -> Iterator[str]:
    """The items of earlier answers that a request names instead of repeating them, as some SDKs do."""
    for item in read.mappings(asked):
        id_ = read.text_or_none(item.get("id"))
        if id_ is not None and item.get("type") in ("item_reference", None) and "role" not in item:
            yield id_


def _stored(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The id of the conversation that the API keeps, in a request or an answer."""
    named = fields.get("conversation")
    id_ = read.text_or_none(named.get("id") if isinstance(named, dict) else named)
    return () if id_ is None else (id_,)


def _response(fields: Mapping[str, Any], *, complete: bool) -> Response:
    usage = fields.get("usage")
    tokens = usage if isinstance(usage, dict) else {}
    output = read.mappings(fields.get("output"))
    said = [message for message in map(_message, output) if message is not None and message.role == "assistant"]
    return Response(
        id=read.text_or_none(fields.get("id")),
        choices=(Choice(0, _joined(said), _finish(fields)),) if said or complete else (),
        prompt_tokens=read.count(tokens.get("input_tokens")),
        completion_tokens=read.count(tokens.get("output_tokens")),
        complete=complete,
        resumable=True,
        references=(*_stored(fields), *(id_ for one in output[-1:] if (id_ := read.text_or_none(one.get("id"))))),
    )


def _finish(fields: Mapping[str, Any]) -> str | None:
    details = fields.get("incomplete_details")
    reason = read.text_or_none(details.get("reason")) if isinstance(details, dict) else None
    return reason or read.text_or_none(fields.get("status"))


def _assembled(events: Sequence[bytes]) -> Response:
    """Return the answer of a stream, from its end alone where that tells it all."""
    fields, complete = _end(events)
    if not read.mappings(fields.get("output")):
        begun, output = _pieces(events)
        fields = {**begun, **fields, "output": output}
    return _response(fields, complete=complete)


def _end(events: Sequence[bytes]) -> tuple[dict[str, Any], bool]:
    """Return the response that the last event carries, and whether it is an answer."""
    for data in reversed(events[-_LAST:]):
        event = read.mapping(data) or {}
        kind, whole = read.text(event.get("type")), event.get("response")
        if kind in _ENDS:
            return whole if isinstance(whole, dict) else {}, _ENDS[kind]
    return {}, False


def _pieces(events: Iterable[bytes]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the response as it began, and the items that came: whole ones, or the texts of those that broke off."""
    begun: dict[str, Any] = {}
    whole: dict[int, dict[str, Any]] = {}
    texts: dict[int, list[str]] = {}
    for event in filter(None, map(read.mapping, events)):
        kind, place = read.text(event.get("type")), read.count(event.get("output_index")) or 0
        if kind == "response.created" and isinstance(event.get("response"), dict):
            begun = event["response"]
        elif kind == "response.output_item.done" and isinstance(event.get("item"), dict):
            whole[place] = event["item"]
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            texts.setdefault(place, []).append(read.text(event.get("delta")))
    spoken = {place: {"role": "assistant", "content": parts.paired("".join(some))} for place, some in texts.items()}
    items = {**spoken, **whole}
    return begun, [items[place] for place in sorted(items)]
