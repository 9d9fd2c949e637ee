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

_SAID = {
    "missing": "is missing",
    "extra_forbidden": "is no field of this",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a string",
    "list_type": "must be a list",
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
    """Return the JSON value of a body; 400 when it is none, or holds text that is no Unicode."""
    try:
        value = json.loads(body)
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


def _refuse_lone_surrogates(value: Any) -> None:
    """Raise ValueError when a string in `value` holds one: it can be neither stored nor answered."""
    json.dumps(value, ensure_ascii=False).encode()


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
