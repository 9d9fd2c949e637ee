"""Completions of a plain prompt: the prompt as a user's message, each choice's text as an answer to it.

Of a request with several prompts the first one is read, and `n` counts its answers: the others are tasks of their own,
which one record cannot tell apart. A lens and no model of the API, like the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tfgrpo.dialects import chunks, parts
from tfgrpo.dialects import json_reading as read
from tfgrpo.types import Choice, Message, Request, Response


class Completions:
    """`POST /v1/completions`."""

    name: Final = "completions"
    turn = True

    def read_request(self, body: bytes) -> Request | None:
        """Return what we read of a request; None when it is no JSON object with a prompt."""
        fields = read.mapping(body)
        if fields is None or not isinstance(fields.get("prompt"), str | list):
            return None
        return Request(
            model=read.text_or_none(fields.get("model")),
            messages=(Message("user", _first(fields["prompt"])),),
            stream=fields.get("stream") is True,
            n=read.choices(fields.get("n")),
            session_id=read.session(fields),
        )

    def read_response(self, body: bytes, content_type: str) -> Response | None:
        """Return what we read of a response; None when it is neither JSON nor a stream of events."""
        return chunks.answer(body, content_type, _choice, _Growing)


def _first(prompt: str | list[Any]) -> str:
    """The text of the first prompt; for tokens a note that tells two prompts apart."""
    if isinstance(prompt, str):
        return prompt
    first = prompt[0] if prompt else ""
    if isinstance(first, str):
        return first
    return parts.part({"type": "tokens", "tokens": first if isinstance(first, list) else prompt})


def _choice(place: int, fields: Mapping[str, Any]) -> Choice:
    message = Message("assistant", read.text(fields.get("text")))
    return Choice(chunks.index(fields, place), message, read.text_or_none(fields.get("finish_reason")))


class _Growing:
    """One choice of a stream as its pieces come in."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def take(self, chunk: Mapping[str, Any]) -> None:
        """Add what one chunk says of this choice."""
        self.texts.append(read.text(chunk.get("text")))

    def message(self) -> Message:
        """Return the message that the pieces make."""
        return Message("assistant", parts.paired("".join(self.texts)))
