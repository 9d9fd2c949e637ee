"""What litellm raises, translated once: into the upstream's own refusal in the caller's envelope, or into one of ours.

litellm gives most errors a status of its own choice. What the provider really answered hangs in the chain of causes,
with status, headers and body, and that is what is told. The classes of httpx, through which litellm speaks, are looked
at by what they have and not by import: they come with litellm, which is loaded only where it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from proxy.errors import ProxyError
from proxy.failures import Unreachable

_KEPT_HEADERS: Final = frozenset({"x-should-retry", "x-request-id", "request-id"})
_KEPT_PREFIXES: Final = ("retry-after", "x-ratelimit-", "anthropic-ratelimit-")
_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_LONGEST: Final = 2000
_CLIENT_ERRORS: Final = range(400, 500)
_ERRORS: Final = range(400, 600)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a provider answered in place of what it was asked for."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def told(error: BaseException, key: str) -> Refusal:
    """Return the provider's refusal behind an exception of litellm's. `key` is taken out of every text.

    Raises:
        Unreachable: The provider gave no answer.
        ProxyError: litellm itself refused or failed.
    """
    causes = list(_causes(error))
    response = next((found for one in reversed(causes) if (found := _response(one)) is not None), None)
    if response is not None and response.status_code in _ERRORS:
        return _refusal(response, _without(key, _said(error)), key)
    if any(isinstance(one, TimeoutError) or type(one).__name__.endswith("Timeout") for one in causes):
        raise Unreachable("it did not answer in time", timed_out=True) from error
    if any(isinstance(one, aiohttp.ClientError | OSError) or _is_transport(one) for one in causes):
        raise Unreachable("the connection failed", timed_out=False) from error
    missing = next((one for one in causes if isinstance(one, ImportError)), None)
    if missing is not None:
        raise ProxyError(
            501, f"litellm needs the package {missing.name!r} for this, which is not installed", code="not_carried"
        ) from error
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status in _CLIENT_ERRORS:
        raise ProxyError(status, _without(key, _said(error)), code="litellm_refused") from error
    raise ProxyError(502, f"litellm failed: {_without(key, _said(error))}", code="litellm_failed") from error


def broken(error: BaseException, key: str) -> str:
    """Why a stream broke off, on one short line."""
    return " ".join(_without(key, _said(error)).split())[:200]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _response(error: BaseException) -> Any:
    """The provider's answer that an exception holds. One that litellm made up has no headers."""
    response = getattr(error, "response", None)
    status, headers = getattr(response, "status_code", None), getattr(response, "headers", None)
    return response if isinstance(status, int) and headers else None


def _is_transport(error: BaseException) -> bool:
    return any(kind.__name__ == "TransportError" and kind.__module__ == "httpx" for kind in type(error).__mro__)


def _refusal(response: Any, said: str, key: str) -> Refusal:
    status: int = response.status_code
    headers = tuple(
        (name.lower().encode(), value.encode("latin-1", "replace"))
        for name, value in response.headers.items()
        if name.lower() in _KEPT_HEADERS or name.lower().startswith(_KEPT_PREFIXES)
    )
    given = _inner(response)
    message = _first_text(given, "message", "detail", "error") or said
    kind = _first_text(given, "type", "status") or _TYPES.get(status, "api_error")
    inner = {
        "message": _without(key, message),
        "type": kind,
        "param": _first_text(given, "param"),
        "code": _first_text(given, "code"),
    }
    return Refusal(status, headers, json.dumps({"error": inner}).encode())


def _inner(response: Any) -> dict[str, Any]:
    """The object of a provider's error body that says what happened; {} when it holds none that is known."""
    try:
        value = json.loads(response.content)
    except Exception:  # noqa: BLE001 - a body that was never read raises a class of httpx; then there is no body
        return {}
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return {}
    error = value.get("error")
    return error if isinstance(error, dict) else value


def _first_text(of: dict[str, Any], *names: str) -> str | None:
    return next((found for name in names if isinstance(found := of.get(name), str) and found), None)


def _said(error: BaseException) -> str:
    message = getattr(error, "message", None)
    text = message if isinstance(message, str) and message else str(error) or type(error).__name__
    # litellm appends the traceback of what it did not expect, with the paths of this machine.
    return text.partition("\nTraceback")[0][:_LONGEST]


def _without(key: str, text: str) -> str:
    return text.replace(key, "[api_key]") if key else text
