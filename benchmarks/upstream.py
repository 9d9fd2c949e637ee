"""The provider that every target is put in front of: answers at once, or in chunks at a given pace.

It lives in the process of the load generator and reads of HTTP no more than where a request ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import cast

from benchmarks import bodies


@dataclass(frozen=True, slots=True)
class Plan:
    """How a stream is sent: `chunks`, one every `pace` seconds; 0: as fast as they are taken."""

    chunks: int
    pace: float


class Upstream:
    """Listens on a free port of 127.0.0.1. `plan` None: whole answers."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.port = 0
        self.body_bytes = 0
        """The size of the last request body."""
        self.numbers = count(1)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Upstream]:
        """Serve while the block runs."""
        server = await asyncio.get_running_loop().create_server(lambda: _Line(self), "127.0.0.1", 0, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()


class _Line(asyncio.Protocol):
    """One connection of a proxy."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._head = bytearray()
        self._left = 0
        self._stream: _Stream | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        if self._stream is not None:
            self._stream.stop()

    def pause_writing(self) -> None:
        if self._stream is not None:
            self._stream.pause()

    def resume_writing(self) -> None:
        if self._stream is not None:
            self._stream.resume()

    def data_received(self, data: bytes) -> None:
        if self._left > 0:
            self._left -= len(data)
        else:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._head[:end]).lower()
            at = head.find(b"content-length:")
            if at < 0:
                # A chunked request: its end is looked for, its parts are not.
                if not self._head.endswith(b"0\r\n\r\n"):
                    return
                length = len(self._head) - end - 4
            else:
                length = int(head[at + 15 :].split(b"\r\n", 1)[0])
            self._left = length - (len(self._head) - end - 4)
            self._upstream.body_bytes = length
            self._head.clear()
        if self._left <= 0:
            self._answer()

    def _answer(self) -> None:
        number = next(self._upstream.numbers)
        if self._upstream.plan is None:
            self._transport.write(bodies.answer(number))
        else:
            self._stream = _Stream(self._transport, number, self._upstream.plan)


class _Stream:
    """One answer that is being sent in chunks."""

    def __init__(self, transport: asyncio.Transport, number: int, plan: Plan) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._events = bodies.Events(number)
        self._left, self._pace = plan.chunks, plan.pace
        self._due = self._loop.time()
        self._paused = False
        self._timer: asyncio.Handle | None = None
        transport.write(bodies.STREAM_HEAD)
        self._send()

    def stop(self) -> None:
        """Send no more."""
        self._left = 0
        if self._timer is not None:
            self._timer.cancel()

    def pause(self) -> None:
        """Wait until the proxy takes more."""
        self._paused = True

    def resume(self) -> None:
        """Go on where it was paused."""
        self._paused = False
        if self._timer is None and self._left > 0:
            self._send()

    def _send(self) -> None:
        self._timer = None
        if self._paused or self._left == 0:
            return
        self._left -= 1
        if self._left == 0:
            self._transport.write(self._events.last(0))
            return
        self._transport.write(self._events.chunk(self._left))
        if self._pace == 0:
            self._timer = self._loop.call_soon(self._send)
        else:
            self._due += self._pace
            self._timer = self._loop.call_at(self._due, self._send)
