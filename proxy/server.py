"""How uvicorn serves the proxy: its options, the bound on request headers, the log. It knows no endpoint."""

from __future__ import annotations

import logging
import socket
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from proxy.errors import ProxyError, envelope
from proxy.settings import Server

HEADER_BYTES: Final = 64 * 1024
KEEP_ALIVE_SECONDS: Final = 75
"""Above what HTTP clients keep an idle connection for, so that it is they who close it."""

_QUIET: Final = (
    # Said whenever an upstream breaks off and we break off with it; the record and our own log say it better.
    "ASGI callable returned without completing response.",
    # Said for each WebSocket request, which the relay answers with 501.
    "Unsupported upgrade request.",
    "No supported WebSocket library detected.",
    # The client is told; a scanner on the internet is no event.
    "Invalid HTTP request received.",
)


class BoundedHeaders(HttpToolsProtocol):
    """uvicorn's protocol with a limit to the bytes of a request's line and headers: 431 instead of memory."""

    _head = 0
    _in_head = True

    def on_message_begin(self) -> None:
        """Begin to count."""
        self._head, self._in_head = 0, True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header that is complete."""
        self._head += len(name) + len(value) + 4
        if self._head > HEADER_BYTES:
            raise ValueError("the headers are too large")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Count what comes while a head is incomplete: one endless header never completes."""
        before = self._head
        super().data_received(data)
        if self._in_head and self._head == before and not self.transport.is_closing():
            self._head += len(data)
            if self._head > HEADER_BYTES:
                self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """Refuse in JSON: too large a head, or no HTTP."""
        if self._head > HEADER_BYTES:
            error = ProxyError(431, f"the headers are larger than {HEADER_BYTES} bytes", code="headers_too_large")
        else:
            error = ProxyError(400, msg, code="invalid_http")
        status, headers, body = envelope(error)
        lines = [f"HTTP/1.1 {status} {'Bad Request' if status == 400 else 'Request Header Fields Too Large'}".encode()]  # noqa: PLR2004
        lines += [name + b": " + value for name, value in (*headers, (b"connection", b"close"))]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()


class Quiet(logging.Filter):
    """Keeps lines of uvicorn's out of the log that say what is no event here."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is worth reading."""
        return not record.getMessage().startswith(_QUIET)


LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {"quiet": {"()": "proxy.server.Quiet"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["quiet"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"uvicorn": {"level": "WARNING"}, "uvicorn.error": {"level": "WARNING"}},
}


def configured(
    app: Any, server: Server, *, factory: bool = False, log: dict[str, Any] | None = LOGGING
) -> uvicorn.Config:
    """The one way the proxy is served. `app` is an ASGI application, or with `factory` where one is made.

    `log` None leaves logging to whoever embeds it.
    """
    return uvicorn.Config(
        app,
        factory=factory,
        host=server.host,
        port=server.port,
        workers=server.workers,
        loop="uvloop",
        http=BoundedHeaders,
        ws="none",
        lifespan="on",
        interface="asgi3",
        access_log=False,
        log_config=log,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=server.drain_seconds,
    )


def bind(server: Server) -> socket.socket:
    """Take the port; OSError when it cannot be had."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listening = socket.create_server((server.host, server.port), family=family, backlog=2048)
    listening.set_inheritable(True)
    return listening
