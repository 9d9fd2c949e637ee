"""A client's connection, as uvicorn speaks HTTP/1.1 on it, with the bounds that uvicorn does not have.

The head of a request is bounded in bytes (431) and in time (408); what is no HTTP is refused in JSON, and never in the
middle of an answer; whoever serves a request can be told at once when its client goes away. It knows no endpoint.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from proxy.errors import ProxyError, envelope

HEADER_BYTES: Final = 64 * 1024
HEAD_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.25
"""How often a client whose body is not read is looked at: well below the second within which it must be missed."""

LINE: Final = "tfgrpo.line"
"""Where a request's scope holds its connection."""

_LEFT: Final = getattr(select, "POLLRDHUP", 0)
_NEVER: Final = object()


class Connection(HttpToolsProtocol):
    """One connection. `on_lost` is called when it ends while a request is served; `lost` says that it did."""

    head_seconds = HEAD_SECONDS
    """How long a head may take, or a body that nobody reads any more. It is noticed within twice that time."""

    on_lost: Callable[[], None] | None = None
    lost = False
    flow: _Flow
    _head = 0
    _in_head = True
    _stale: Any = _NEVER
    _looking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Begin to serve, and to look now and then whether a request is still coming in."""
        super().connection_made(transport)
        self.flow = _Flow(transport)
        self._looking = self.loop.call_later(self.head_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever serves a request."""
        super().connection_lost(exc)
        self.lost = True
        if self._looking is not None:
            self._looking.cancel()
        self.flow.end()
        if self.on_lost is not None:
            self.on_lost()

    def eof_received(self) -> None:
        """Let go at once of a client that left: what waits to be written would keep the connection open."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Begin to count."""
        self._head, self._in_head = 0, True
        super().on_message_begin()
        self.scope[LINE] = self  # type: ignore[typeddict-unknown-key]

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header that is complete."""
        self._head += len(name) + len(value) + 4
        if self._head > HEADER_BYTES:
            raise ValueError("the headers are too large")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop counting."""
        self._head += len(self.url)
        if self._head > HEADER_BYTES:
            raise ValueError("the path is too long")
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
        """Refuse what came: too large a head, or no HTTP."""
        if self._head > HEADER_BYTES:
            error = ProxyError(431, f"the head is larger than {HEADER_BYTES} bytes", code="headers_too_large")
        else:
            error = ProxyError(400, msg, code="invalid_http")
        self._refuse(error)

    def _refuse(self, error: ProxyError) -> None:
        served = self.cycle is not None and not self.cycle.response_complete
        # In the middle of an answer, or in place of one, our text would be taken for a part of it.
        if not served or (self.cycle.more_body and not self.cycle.response_started):
            status, headers, body = envelope(error)
            lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
            lines += [name + b": " + value for name, value in (*headers, (b"connection", b"close"))]
            self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()

    def _look(self) -> None:
        """Close a connection on which one and the same request has been coming in since the last look."""
        spent = self.cycle is not None and self.cycle.response_complete and self.timeout_keep_alive_task is None
        coming = self.scope if self._in_head or spent else _NEVER
        if coming is not _NEVER and coming is self._stale:
            if coming is not None and not spent:
                self._refuse(ProxyError(408, "the request did not come in time", code="request_timeout"))
            self.transport.close()
            return
        self._stale = coming
        self._looking = self.loop.call_later(self.head_seconds, self._look)


class _Flow(FlowControl):
    """Looks after a client while nothing is read from it: its leaving would stand behind bytes that nobody takes.

    Where the system tells of the end before it is read (Linux), the connection is dropped within LOOK_SECONDS. An end
    that has not come in yet, for our side has no room for what stands before it, cannot be seen by anybody.
    """

    _looking: asyncio.TimerHandle | None = None

    def pause_reading(self) -> None:
        """Stop reading, and look."""
        if not self.read_paused:
            self._look_later()
        super().pause_reading()

    def resume_reading(self) -> None:
        """Read again; what there is to see will be read."""
        self.end()
        super().resume_reading()

    def end(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _look_later(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), _LEFT)
        if poll.poll(0):
            self._transport.abort()
        else:
            self._look_later()
