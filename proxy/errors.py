"""Our own refusals, in the form that the called API gives its errors.

An upstream's error is not ours: it is relayed as it came and never passes through here. Nothing in this module knows
why something was refused; it only knows how to say it.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from tfgrpo.errors import Conflict, NotFound, StoreError, TfgrpoError, UsageError

ERROR_TYPE = "proxy_error"
EXCHANGE_HEADER = b"x-tfgrpo-exchange"
AGAIN_SOON: Final = ((b"retry-after", b"2"),)

STORE_AWAY: Final = "the store gives no answer now and nothing was changed; send the request again (the log says why)"

_log = logging.getLogger(__name__)


class ProxyError(Exception):
    """A refusal of ours: what the client is answered. `param` names the offending part of its request."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.headers = headers
        self.type = ERROR_TYPE


STOPPED: Final = ProxyError(503, "the proxy is being stopped; send the request again", code="stopping")
"""What a request is answered that was not finished when the time to finish was over."""


def too_large(limit: int) -> ProxyError:
    """The refusal of a body of more than `limit` bytes."""
    return ProxyError(413, f"the body is longer than {limit} bytes; send a shorter one", code="request_too_large")


def envelope(
    error: ProxyError, dialect_name: str | None = None, exchange_id: str | None = None
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Status, headers and body of an error for the API that was called (`messages`, or OpenAI's form)."""
    shape = _messages_form if dialect_name == "messages" else _openai_form
    body = json.dumps(shape(error, exchange_id)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if exchange_id is not None:
        headers.append((EXCHANGE_HEADER, exchange_id.encode()))
    headers.extend(error.headers)
    return error.status, headers, body


def from_tfgrpo(error: TfgrpoError) -> ProxyError:
    """The library's errors as a client of ours sees them."""
    if isinstance(error, NotFound):
        return ProxyError(404, str(error), code="not_found")
    if isinstance(error, Conflict):
        return ProxyError(409, str(error), code="conflict")
    if isinstance(error, UsageError):
        return ProxyError(400, str(error), code="invalid_request", param=error.field)
    if isinstance(error, StoreError):
        # A driver's words name hosts and files of ours.
        _log.warning("a request was refused for want of the store: %s", error)
        return ProxyError(503, STORE_AWAY, code="store_unavailable", headers=AGAIN_SOON)
    return ProxyError(500, str(error), code="internal_error")


def _openai_form(error: ProxyError, exchange_id: str | None) -> dict[str, Any]:
    inner: dict[str, Any] = {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
    }
    if exchange_id is not None:
        inner["exchange_id"] = exchange_id
    return {"error": inner}


def _messages_form(error: ProxyError, exchange_id: str | None) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": error.type, "message": error.message},
        "request_id": exchange_id,
    }
