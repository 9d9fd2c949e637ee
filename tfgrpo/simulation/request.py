"""Reading a chat request strictly: what is wrong with it is told in the words of OpenAI's error envelope.

Members that the simulation does not use are accepted as they are, but for those whose type everybody relies on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfgrpo.errors import TfgrpoError
from tfgrpo.types import Message

MOST_CHOICES = 128

_NUMBERS = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
_ABOUT_SENDING = frozenset({"stream", "stream_options"})
_INTEGERS = ("seed", "max_tokens", "max_completion_tokens", "n")


class Refused(TfgrpoError):  # noqa: N818 - reads as what it says where it is caught
    """A request that gets an error: its status, and the members of OpenAI's envelope."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code

    @classmethod
    def unknown_model(cls, model: str, known: Sequence[str]) -> Refused:
        """The error for a model that does not exist."""
        message = f"The model `{model}` does not exist. This provider has: {', '.join(known)}."
        return cls(message, status=404, param="model", code="model_not_found")


@dataclass(frozen=True, slots=True)
class Request:
    """What the simulation reads of a chat request."""

    model: str
    messages: tuple[Message, ...]
    n: int
    max_tokens: int | None
    stream: bool
    include_usage: bool
    canonical: bytes
    """The whole request with its members sorted, but for those that say how the answer is sent."""


def read_request(body: bytes) -> Request:
    """The request in an HTTP body.

    Raises:
        Refused: it is not JSON, not an object, or a member has the wrong type; `param` names it.
    """
    value, canonical = _object(body)
    model = value.get("model")
    if not isinstance(model, str) or not model:
        raise Refused("you must provide a model parameter: a string", param="model")
    _check_numbers(value)
    listed = value.get("messages")
    if not isinstance(listed, list) or not listed:
        raise Refused("messages must be an array of at least one message", param="messages")
    limit = value.get("max_completion_tokens")
    return Request(
        model,
        tuple(_message(one, at) for at, one in enumerate(listed)),
        n=_count(value),
        max_tokens=value.get("max_tokens") if limit is None else limit,
        stream=_flag(value, "stream", "stream"),
        include_usage=_include_usage(value),
        canonical=canonical,
    )


def _object(body: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        value = json.loads(body)
        if not isinstance(value, dict):
            raise Refused("the body of the request must be a JSON object")
        said = {name: member for name, member in value.items() if name not in _ABOUT_SENDING}
        # What cannot be written again is refused too: nested too deeply, or a number too long.
        return value, json.dumps(said, sort_keys=True).encode()
    except (ValueError, RecursionError) as error:
        raise Refused(f"We could not parse the JSON body of your request: {error}") from error


def _check_numbers(value: dict[str, Any]) -> None:
    for name, (low, high) in _NUMBERS.items():
        number = value.get(name)
        if number is not None and (_is_no_number(number) or not low <= number <= high):
            raise Refused(f"{name} must be a number from {low} to {high}", param=name)
    for name in _INTEGERS:
        number = value.get(name)
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise Refused(f"{name} must be an integer", param=name)
        if number is not None and name != "seed" and number < 1:
            raise Refused(f"{name} must be at least 1", param=name)


def _is_no_number(value: object) -> bool:
    return isinstance(value, bool) or not isinstance(value, int | float)


def _count(value: dict[str, Any]) -> int:
    n = value.get("n")
    if n is not None and n > MOST_CHOICES:
        raise Refused(f"n must be at most {MOST_CHOICES}", param="n")
    return 1 if n is None else int(n)


def _flag(value: dict[str, Any], name: str, param: str) -> bool:
    flag = value.get(name)
    if flag is not None and not isinstance(flag, bool):
        raise Refused(f"{param} must be true or false", param=param)
    return bool(flag)


def _include_usage(value: dict[str, Any]) -> bool:
    options = value.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise Refused("stream_options must be an object", param="stream_options")
    if not value.get("stream"):
        raise Refused("stream_options is only allowed when stream is true", param="stream_options")
    return _flag(options, "include_usage", "stream_options.include_usage")


def _message(value: object, at: int) -> Message:
    where = f"messages[{at}]"
    if not isinstance(value, dict):
        raise Refused(f"{where} must be an object", param=where)
    role = value.get("role")
    if not isinstance(role, str):
        raise Refused(f"{where}.role must be a string", param=f"{where}.role")
    return Message(role, _text(value.get("content"), f"{where}.content"))


def _text(content: object, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Refused(f"{where} must be a string or an array of parts", param=where)
    return "\n".join(_part(part, f"{where}[{at}]") for at, part in enumerate(content))


def _part(part: object, where: str) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise Refused(f"{where} must be an object with a type", param=where)
    if part["type"] != "text":
        return ""
    text = part.get("text")
    if not isinstance(text, str):
        raise Refused(f"{where}.text must be a string", param=f"{where}.text")
    return text
