"""A client's connection, as uvicorn speaks HTTP/1.1 on it, with the bounds that uvicorn does not have.

The head of a request is bounded in bytes (431) and in time (408); what is no HTTP is refused in JSON, and never in the
middle of an answer; whoever serves a request can be told at once when its client goes away. It knows no endpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from proxy.errors import ProxyError, envelope
from proxy.http10 import UntilClose
from proxy.wire import HEADER_BYTES, Peer
from proxy.writing import Together

HEAD_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.25
"""How often a client whose body is not read is looked at: well below the second within which it must be missed."""

LINE: Final = "tfgrpo.line"
"""Where a request's scope holds its connection."""
BARE_QUERY: Final = "tfgrpo.bare_query"
"""Where a request's scope says that a `?` with nothing behind it follows its path: ASGI has no word for that."""

_NOT_HTTP: Final = ProxyError(400, "this is no valid HTTP/1.1 request", code="invalid_http")
_TOO_LARGE: Final = ProxyError(431, f"the head is larger than {HEADER_BYTES} bytes", code="headers_too_large")
_LATE: Final = ProxyError(408, "the request did not come in time", code="request_timeout")


class Connection(HttpToolsProtocol):
    """One connection. `on_lost` is called when it ends while a request is served; `lost` says that it did."""

    head_seconds = HEAD_SECONDS
    """How long a head may take, or a body that nobody reads any more. It is noticed within twice that time."""

    on_lost: Callable[[], None] | None = None
    lost = False
    flow: _Flow
    _head = 0
    _in_head = True
    _asks_to_upgrade = False
    _refused = False
    _seen: tuple[str, Any] = ("", None)
    _looking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Begin to serve, and to look now and then whether a request is still coming in."""
        super().connection_made(transport)
        self.transport = Together(transport, self.loop)  # type: ignore[assignment] # all that is asked of one
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
        # What refers to each other in a ring waits for the collector, which comes seldom here.
        if self.scope is not None:
            self.scope.pop(LINE, None)  # type: ignore[typeddict-item] # a key of ours
        self.cycle = None  # type: ignore[assignment] # as it began

    def eof_received(self) -> None:
        """Let go at once of a client that left: what waits to be written would keep the connection open."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()

    def shutdown(self) -> None:
        """The server stops: let go at once of a client that was told its last."""
        self.transport.abort() if self._refused else super().shutdown()

    def on_message_begin(self) -> None:
        """Begin to count."""
        self._head, self._in_head = 0, True
        super().on_message_begin()
        self.scope[LINE] = self  # type: ignore[typeddict-unknown-key]

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header that is complete; a trailer is none, and goes no further."""
        self._head += len(name) + len(value) + 4
        if self._head > HEADER_BYTES:
            raise ValueError("the headers are too large")
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop counting, and begin to serve."""
        self._head += len(self.url)
        if self._head > HEADER_BYTES:
            raise ValueError("the path is too long")
        self._in_head = False
        self._asks_to_upgrade = self.parser.should_upgrade() and self._get_upgrade() not in (None, b"websocket")
        if self.url.endswith(b"?"):
            self.scope[BARE_QUERY] = True  # type: ignore[typeddict-unknown-key]
        if not self._asks_to_upgrade:
            super().on_headers_complete()
            if self.scope["http_version"] == "1.0":
                UntilClose(self.cycle)

    def on_message_complete(self) -> None:
        """Note the end of a request's body."""
        if not self._asks_to_upgrade:
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse what came, and count it while a head is incomplete: one endless header never completes."""
        self._unset_keepalive_if_required()
        before = self._head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stopped:
            if self._asks_to_upgrade:
                self._serve_without_upgrade(data[stopped.args[0] :])
        except httptools.HttpParserError:
            self._refuse(_NOT_HTTP if self._head <= HEADER_BYTES else _TOO_LARGE)
        else:
            if self._in_head and self._head == before and not self.transport.is_closing():
                self._head += len(data)
                if self._head > HEADER_BYTES:
                    self._refuse(_TOO_LARGE)

    def pass_on(self, piece: bytes) -> bool:
        """Send a chunk of the running answer, if it is one in chunks and its client takes some."""
        cycle = self.cycle
        if cycle is None or not cycle.chunked_encoding or cycle.response_complete or self.flow.write_paused:
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        return True

    def _serve_without_upgrade(self, rest: bytes) -> None:
        """Serve a request as if it had not asked for another protocol (RFC 9110, 7.8: a server may ignore that).

        The parser takes its body for that protocol's bytes, and so has to read its head anew. Java's own HTTP client
        asks for h2c with the first request of a connection.
        """
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        for name, value in self.headers:
            if name == b"connection":
                tokens = [token for token in value.split(b",") if token.strip().lower() != b"upgrade"]
                lines.append(b"connection: " + b",".join(tokens))
            elif name != b"upgrade":
                lines.append(name + b": " + value)
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def _refuse(self, error: ProxyError) -> None:
        """Answer what came, if there is a place for an answer, and take no more."""
        self._refused = True
        self.parser = _Nobody()  # type: ignore[assignment] # no parser any more
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            # An earlier request is being served: our text would be taken for its answer.
            cycle.on_response = self._part
        elif cycle is not None and not cycle.response_complete and cycle.response_started:
            self.transport.close()
        else:
            status, headers, body = envelope(error)
            lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
            lines += [name + b": " + value for name, value in (*headers, (b"connection", b"close"))]
            self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
            self._part()
            self._give_up()

    def _give_up(self) -> None:
        """End a request whose body turned out to be no HTTP: for who serves it, its client is gone."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.on_lost is not None:
                self.on_lost()

    def _part(self) -> None:
        """Say no more, and let the client close: a reset would take our last words from one that is still sending."""
        if not self.transport.is_closing():
            self.transport.write_eof()

    def _look(self) -> None:
        """End a connection on which one and the same request has been coming in, or its answer out, for too long."""
        kept, request = self._unfinished(), self.scope
        if kept and kept == self._seen[0] and request is self._seen[1]:
            if kept == "head" and request is not None:
                self._refuse(_LATE)
            else:
                self.transport.abort()
        self._seen = kept, request
        self._looking = self.loop.call_later(self.head_seconds, self._look)

    def _unfinished(self) -> str:
        """What keeps the connection open though nobody here waits for it: a head, the rest of a body, of an answer."""
        if self._refused or self.transport.is_closing():
            return "answer"
        if self._in_head:
            return "head"
        return "body" if self.cycle.response_complete and self.timeout_keep_alive_task is None else ""


class _Nobody:
    """Takes the place of a parser that has lost its way: what comes is thrown away."""

    def feed_data(self, data: bytes) -> None:
        """Take it."""


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
        if Peer(self._transport).left():
            self._transport.abort()
        else:
            self._look_later()
