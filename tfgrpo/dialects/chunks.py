"""Answers in the form of the completion APIs: choices beside a usage, whole or as a stream of chunks until `[DONE]`.

What a choice holds is the business of each API, which gives a `Growing` to put one together with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from tfgrpo.dialects import json_reading as read
from tfgrpo.dialects import sse
from tfgrpo.types import Choice, Message, Response


class Growing(Protocol):
    """One choice of a stream as its pieces come in."""

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Add what one chunk says of this choice."""
        ...

    def message(self) -> Message:
        """Return the message that the pieces make."""
        ...


def index(fields: Mapping[str, Any], place: int = 0) -> int:
    """Return the index of a choice; one that names none has that of its place."""
    found = read.count(fields.get("index"))
    return place if found is None else found


def answer(
    body: bytes,
    content_type: str,
    choice: Callable[[int, Mapping[str, Any]], Choice],
    begin: Callable[[], Growing],
) -> Response | None:
    """Return what we read of a response; None when it is neither JSON nor a stream of events.

    `choice` reads one choice at its place of a whole answer, `begin` makes what puts one of a stream together.
    """
    if sse.is_stream(body, content_type):
        return _assembled(body, begin)
    fields = read.mapping(body)
    if fields is None:
        return None
    choices = tuple(choice(place, one) for place, one in enumerate(read.mappings(fields.get("choices"))))
    return _response(fields, choices, complete=bool(choices))


def _response(fields: Mapping[str, Any], choices: tuple[Choice, ...], *, complete: bool) -> Response:
    """Return an answer with the id and the usage that `fields` hold."""
    usage = fields.get("usage")
    tokens = usage if isinstance(usage, dict) else {}
    return Response(
        id=read.text_or_none(fields.get("id")),
        choices=choices,
        prompt_tokens=read.count(tokens.get("prompt_tokens")),
        completion_tokens=read.count(tokens.get("completion_tokens")),
        complete=complete,
    )


def _assembled(body: bytes, begin: Callable[[], Growing]) -> Response:
    """Return the answer that a recorded stream makes."""
    growing: dict[int, Growing] = {}
    finish: dict[int, str] = {}
    id_: Any = None
    usage: Any = None
    sound = done = False
    for sound, chunk in _chunks(body):
        if not sound:
            break
        if chunk is None:
            done = True
            break
        id_, usage = id_ or chunk.get("id"), chunk.get("usage") or usage
        for one in read.mappings(chunk.get("choices")):
            number = index(one)
            if number not in growing:
                growing[number] = begin()
            growing[number].take(one)
            finish[number] = read.text(one.get("finish_reason")) or finish.get(number, "")
    choices = tuple(Choice(number, one.message(), finish[number] or None) for number, one in sorted(growing.items()))
    finished = bool(choices) and (done or all(finish.values()))
    return _response({"id": id_, "usage": usage}, choices, complete=sound and finished)


def _chunks(body: bytes) -> Iterator[tuple[bool, dict[str, Any] | None]]:
    """Yield (sound, chunk); the chunk is None at `[DONE]`. An error or a broken event is not sound."""
    for data in sse.data(body):
        if data.strip() == b"[DONE]":
            yield True, None
        elif data:
            chunk = read.mapping(data)
            yield chunk is not None and not chunk.get("error"), chunk
