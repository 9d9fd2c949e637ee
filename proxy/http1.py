"""One connection to an upstream: HTTP/1.1 as most requests need it, a body in hand and an answer read as it comes.

llhttp finds where things end; the bytes are passed on as they are. It has no timers of its own: whoever owns the line
asks it, now and then, whether it has waited for too long. It knows neither how connections are made nor when they are
kept. A general client costs several times as much CPU per request, more than all else that is done for one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

import httptools

from proxy.answers import Take
from proxy.failures import Broken, Unreachable, reason
from proxy.wire import HEADER_BYTES, Peer

BUFFER_BYTES: Final = 256 * 1024
"""So much of an answer may wait for the client; then the upstream must wait."""

_FIRST_STATUS: Final = 200
_LAST_STATUS: Final = 599
_NEVER_A_BODY: Final = (204, 304)
_NEVER: Final = float("inf")


class PlainAnswer:
    """An `answers.Answer` that a line reads."""

    __slots__ = ("_line", "bodiless", "headers", "status", "take")

    def __init__(self, line: Line, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._line: Line | None = line
        self.status = status
        self.headers = headers
        self.bodiless = status in _NEVER_A_BODY
        self.take: Take | None = None

    @property
    def ended(self) -> bool:
        """Whether everything has been read, and nothing was cut."""
        return self._line is None or self._line.read_to_end

    async def read(self) -> bytes:
        """Return the next bytes as they came; b"" at the end.

        Raises:
            Broken: The upstream cut the answer, or was silent for too long.
        """
        return b"" if self._line is None else await self._line.read(self.take)

    def close(self) -> None:
        """Let go of the connection: back to its owner when all was read, closed otherwise."""
        line, self._line = self._line, None
        if line is not None:
            line.let_go()


class Line(asyncio.Protocol):
    """A connection. `on_free` takes it back when it may carry another request; `on_lost` when it is no more."""

    def __init__(self, on_free: Callable[[Line], None], on_lost: Callable[[Line], None]) -> None:
        self._on_free = on_free
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._peer: Peer | None = None
        # It refers back to this line, so it goes when the connection goes: the collector comes seldom here.
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        # What servers in the field get wrong and every client takes: as aiohttp has it.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._pieces: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._take: Take | None = None
        self._busy = self._paused = False
        self._failure: BaseException | None = None
        self._deadline = _NEVER
        self.free_since = 0.0
        self._reset()

    def _reset(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = self._status = self._size = self._unsent = 0
        self._has_head = self._framed = self._ended = self._keep = False

    # What the owner calls.

    @property
    def usable(self) -> bool:
        """Whether a request can be sent: the peer is asked after, whose leaving may not have been read yet."""
        return self._open and self._peer is not None and not self._peer.left()

    async def send(self, head: bytes, body: bytes | None, *, first_byte: float, idle: float) -> PlainAnswer:
        """Send a request and return when the head of its answer is there.

        `first_byte` and `idle` are how long it may wait for the head and between two pieces, in seconds.

        Raises:
            Unreachable: No answer came, or none that is HTTP.
        """
        assert self._transport is not None
        self._reset()
        self._busy = True
        self._idle = idle
        self._patience = first_byte
        self._deadline = self._loop.time() + first_byte
        self._transport.writelines((head, body) if body else (head,))
        try:
            while not self._has_head and self._failure is None:
                await self._wait()
        except BaseException:  # a client that left cancels: whatever ends the wait, nobody will read the answer
            self.abort()
            raise
        if not self._has_head or not _FIRST_STATUS <= self._status <= _LAST_STATUS:
            failure = self._failure or ValueError(f"it answered with the status {self._status}")
            self.abort()
            raise _unreachable(failure)
        return PlainAnswer(self, self._status, self._headers)

    def expire(self, now: float) -> None:
        """Fail the exchange if it has waited for too long at `now`, on the loop's clock."""
        if now < self._deadline:
            return
        unsent = self._unsent_bytes()
        if unsent and unsent != self._unsent and not self._has_head:
            # The upstream still takes the request: the wait for its answer has not begun.
            self._unsent = unsent
            self._deadline = now + self._patience
            return
        self._fail(TimeoutError())

    def abort(self) -> None:
        """Close the connection at once."""
        self._busy = False
        self._deadline = _NEVER
        if self._failure is None:
            self._failure = ConnectionAbortedError()
        if self._transport is not None:
            self._transport.abort()

    # What an answer calls.

    @property
    def read_to_end(self) -> bool:
        """Whether all of the answer was read."""
        return self._ended and not self._pieces

    async def read(self, take: Take | None = None) -> bytes:
        """Return what has come, or wait for it; b"" at the end. `take`: as in an answer. Raises Broken."""
        while not self._pieces:
            if self._ended:
                return b""
            if self._failure is not None:
                raise Broken(reason(self._failure)) from self._failure
            self._take = take
            try:
                await self._wait()
            finally:
                self._take = None
        piece = self._joined()
        self._let_go_of_pieces()
        if self._paused and self._transport is not None:
            self._paused = False
            self._deadline = _NEVER if self._ended else self._loop.time() + self._idle
            self._transport.resume_reading()
        return piece

    def let_go(self) -> None:
        """The answer is no longer read."""
        self._busy = False
        self._deadline = _NEVER
        if self.read_to_end and self._keep and self._open and not self._unsent_bytes():
            self.free_since = self._loop.time()
            self._on_free(self)
        else:
            self.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._peer = Peer(transport)

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        parser = self._parser
        if parser is None or not self._busy or self._ended:
            # Nobody asked: whatever it is, it must not become the answer to the next request.
            self._keep = False
            self._fail(ConnectionAbortedError())
            return
        self._deadline = self._loop.time() + self._idle if self._has_head else self._deadline
        if not self._has_head:
            self._head_bytes += len(data)
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(error)
            return
        if not self._has_head and self._head_bytes > HEADER_BYTES:
            self._fail(ValueError("its response headers are too long"))
            return
        if self._take is not None and self._pieces and not self._ended and self._take(self._joined()):
            # Nobody need wake up: on a stream that is half of what a piece costs.
            self._let_go_of_pieces()
            return
        if self._size > BUFFER_BYTES and not self._ended and not self._paused and self._transport is not None:
            self._paused = True
            self._deadline = _NEVER
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is no more. An answer that ends with it is whole if it was closed and not reset."""
        if exc is None and self._has_head and not self._framed and not self._ended and self._failure is None:
            self._ended = True
        elif self._failure is None:
            self._failure = exc or EOFError()
        self._transport = self._parser = None
        self._deadline = _NEVER
        self._wake()
        self._on_lost(self)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """A head begins: of the answer, or of a notice (1xx) before it."""
        if self._ended:
            raise ValueError("more than one answer")
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those behind the body, which few expect, are left out."""
        if not self._has_head:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is there."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < _FIRST_STATUS:
            return
        self._status = status
        self._has_head = True
        self._deadline = self._loop.time() + self._idle
        for name, value in self._headers:
            lower = name.lower()
            if lower == b"content-length" or (lower == b"transfer-encoding" and b"chunked" in value.lower()):
                self._framed = True
        self._framed = self._framed or status in _NEVER_A_BODY

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(piece)
        self._size += len(piece)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._has_head and self._parser is not None:
            self._keep = self._parser.should_keep_alive()
            self._ended = True
            self._deadline = _NEVER

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
        self._deadline = _NEVER
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def _joined(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _let_go_of_pieces(self) -> None:
        self._pieces.clear()
        self._size = 0

    @property
    def _open(self) -> bool:
        return self._failure is None and self._transport is not None and not self._transport.is_closing()

    def _unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _unreachable(failure: BaseException) -> Unreachable:
    if isinstance(failure, TimeoutError):
        return Unreachable("it did not answer in time", timed_out=True)
    if isinstance(failure, EOFError):
        return Unreachable("it closed the connection without an answer", timed_out=False)
    if isinstance(failure, ValueError):
        return Unreachable(str(failure), timed_out=False)
    if isinstance(failure, httptools.HttpParserError | httptools.HttpParserUpgrade):
        return Unreachable("its answer is not HTTP/1.1", timed_out=False)
    return Unreachable(reason(failure), timed_out=False)
