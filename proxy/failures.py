"""How an upstream fails: before the head of its answer came, or after. And what may be said of it."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Final

import aiohttp
import httptools


class Unreachable(Exception):  # noqa: N818 - reads as what it says where it is caught
    """No answer came. `timed_out` tells a slow upstream from one that is down."""

    def __init__(self, reason: str, *, timed_out: bool) -> None:
        super().__init__(reason)
        self.timed_out = timed_out


class Broken(Exception):  # noqa: N818 - as above
    """The answer ended before its end."""


_REASONS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (aiohttp.ClientConnectorDNSError, "its name could not be resolved"),
    (socket.gaierror, "its name could not be resolved"),
    (aiohttp.ClientConnectorCertificateError, "its certificate was not accepted"),
    (ssl.SSLCertVerificationError, "its certificate was not accepted"),
    (aiohttp.ClientSSLError, "no TLS connection could be made"),
    (ssl.SSLError, "no TLS connection could be made"),
    (aiohttp.ClientConnectorError, "the connection failed"),
    (ConnectionResetError, "it reset the connection"),
    (aiohttp.ServerDisconnectedError, "it closed the connection without an answer"),
    (aiohttp.ClientPayloadError, "its answer ended before its end"),
    (EOFError, "its answer ended before its end"),
    (httptools.HttpParserError, "its answer is no HTTP"),
    (TimeoutError, "it fell silent"),
    (OSError, "the connection failed"),
)


def reason(error: BaseException) -> str:
    """What happened, on one line, without the addresses and texts of the error, which a client need not know."""
    said = next((reason for kind, reason in _REASONS if isinstance(error, kind)), "the exchange failed")
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    # Not `strerror`: the event loop writes the address into it.
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return f"{said} ({os.strerror(cause.errno)})"
    return f"{said} ({type(cause).__name__})"
