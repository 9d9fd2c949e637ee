"""JSON that is sent to our own endpoints: bytes to checked values, or a refusal that names the field.

It knows no endpoint. Which fields there are is said by the pydantic models that its callers bring.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from proxy.errors import ProxyError

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_M = TypeVar("_M", bound="Body")

_MOST_DIGITS = 4300
"""As many digits as Python makes an int of."""

_SAID = {
    "missing": "is missing",
    "extra_forbidden": "is no field of this",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
}


class Body(BaseModel):
    """What a model of a request body derives from: nothing is converted, unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


async def read(receive: Receive, *, limit: int) -> bytes:
    """Return the whole body of a request; 413 as soon as it grows over `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ProxyError(400, "the client left before the request was complete", code="incomplete_request")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise ProxyError(413, f"the body is larger than {limit} bytes; send it in parts", code="too_large")
        if not message.get("more_body", False):
            return b"".join(parts)


def parsed(body: bytes) -> Any:
    """Return the JSON value of a body; 400 when it is none, or holds text that is no Unicode.

    A number of more digits than Python reads becomes infinite, which no field takes: so it is the field that is named.
    """
    try:
        value = json.loads(str(body, "utf-8-sig"), parse_int=_integer)
        _refuse_lone_surrogates(value)
    except RecursionError as error:
        raise ProxyError(400, "the body is nested too deeply", code="invalid_json") from error
    except ValueError as error:
        reason = str(error) if isinstance(error, json.JSONDecodeError) else "it is not UTF-8 text"
        raise ProxyError(400, f"the body is not JSON: {reason}", code="invalid_json") from error
    return value


def checked(model: type[_M], value: Any, *, where: str = "") -> _M:
    """Return `value` as a `model`; 400 that names the fields at fault, as `where.field`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _refusal(error, where) from error


def path(where: str, *parts: str | int) -> str:
    """Return how a field is called in an error: `[0].shares.control`."""
    text = where
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _MOST_DIGITS else float(text)


def _refuse_lone_surrogates(value: Any) -> None:
    """Raise ProxyError when a string in `value` holds one: it can be neither stored nor answered."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        param = path("", *_surrogate(value)) or None
        said = f"{param or 'the body'} holds half of a surrogate pair, which is no character"
        raise ProxyError(400, said, code="invalid_value", param=param) from error


def _surrogate(value: Any) -> tuple[str | int, ...]:
    """Where the first string with a lone surrogate stands; a name that holds one stands for its object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(key, str) and not _encodes(key):
            return ()
        if not _encodes(item):
            return (key, *_surrogate(item))
    return ()


def _encodes(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _refusal(error: ValidationError, where: str) -> ProxyError:
    found = error.errors(include_url=False, include_input=False)
    unknown = [path(where, *one["loc"]) for one in found if one["type"] == "extra_forbidden"]
    if unknown:
        return ProxyError(400, f"unknown field {_listed(unknown)}", code="unknown_field", param=unknown[0])
    first = found[0]
    param = path(where, *first["loc"]) or None
    said = _SAID.get(first["type"], first["msg"].removeprefix("Value error, "))
    return ProxyError(400, f"{param or 'the body'} {said}", code="invalid_value", param=param)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
