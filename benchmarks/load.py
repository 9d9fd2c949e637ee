"""The load generator: raw HTTP over connections that are kept, one exchange at a time on each.

It reads of an answer its status, its end and how many chunks it held; what a proxy did is measured elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

from benchmarks.bodies import MARK, Requests

PATIENCE = 120.0
"""Seconds after which an exchange counts as failed."""

_END = b"\r\n0\r\n\r\n"


class LoadError(Exception):
    """A target did not answer as it must for its numbers to mean anything."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One exchange, on the clock of `time.perf_counter`. `first`: when the first chunk came; 0 when none did."""

    status: int
    sent: float
    first: float
    ended: float
    chunks: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load saw. `busy`: the share of its one core that the load generator, with the upstream, used."""

    seen: tuple[Seen, ...]
    seconds: float
    busy: float


class Line(asyncio.Protocol):
    """One connection to a target."""

    def __init__(self) -> None:
        self._waiter: asyncio.Future[Seen] | None = None
        self._transport: asyncio.Transport | None = None
        self._tail = b""
        self._reset()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """End the exchange that was going on, as one that was cut."""
        self._finish(whole=False)

    def data_received(self, data: bytes) -> None:
        """Read on in the answer."""
        if not self._status:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            data = self._open(end)
        self._received += len(data)
        if found := data.count(MARK):
            if not self._chunks:
                self._first = time.perf_counter()
            self._chunks += found
        if self._length is None:
            self._tail = (self._tail + data)[-len(_END) :]
            if self._tail == _END:
                self._finish(whole=True)
        elif self._received >= self._length:
            self._finish(whole=True)

    async def exchange(self, request: bytes) -> Seen:
        """Send a request and return what came back."""
        assert self._transport is not None
        self._reset()
        self._waiter = asyncio.get_running_loop().create_future()
        self._sent = time.perf_counter()
        self._transport.write(request)
        return await self._waiter

    def close(self) -> None:
        """Close the connection, whatever is still to come."""
        if self._transport is not None:
            self._transport.abort()

    def _reset(self) -> None:
        self._head = b""
        self._status = self._received = self._chunks = 0
        self._length: int | None = None
        self._tail = b""
        self._sent = self._first = 0.0

    def _open(self, end: int) -> bytes:
        head = self._head[:end].lower()
        self._status = int(head[9:12])
        at = head.find(b"content-length:")
        self._length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else None
        rest = self._head[end + 4 :]
        # The end of an empty chunked body is found with the end of the head before it.
        self._tail = b"\r\n"
        return rest

    def _finish(self, *, whole: bool) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            now = time.perf_counter()
            waiter.set_result(Seen(self._status, self._sent, self._first, now, self._chunks, whole))


@asynccontextmanager
async def line(port: int) -> AsyncIterator[Line]:
    """Connect to a target of this machine."""
    _, made = await asyncio.get_running_loop().create_connection(Line, "127.0.0.1", port)
    try:
        yield made
    finally:
        made.close()


async def closed(port: int, requests: Requests, seconds: float, connections: int) -> Loaded:
    """Keep `connections` busy for `seconds`: the next request follows the answer at once.

    Raises:
        LoadError: An answer was not 200, or not whole.
    """
    until = time.perf_counter() + seconds
    return await _busy(port, requests, connections, lambda _: time.perf_counter() < until)


async def counted(port: int, requests: Requests, number: int, connections: int) -> Loaded:
    """Send `number` requests, give or take one a connection, as `closed` does.

    Raises:
        LoadError: An answer was not 200, or not whole.
    """
    return await _busy(port, requests, connections, lambda done: done < number)


async def _busy(port: int, requests: Requests, connections: int, more: Callable[[int], bool]) -> Loaded:
    seen: list[Seen] = []
    started, cpu = time.perf_counter(), time.process_time()

    async def keep_busy() -> None:
        async with line(port) as one:
            for request in requests.conversations():
                if not more(len(seen)):
                    return
                answer = await one.exchange(request)
                if answer.status != 200 or not answer.whole:  # noqa: PLR2004 - OK
                    raise LoadError(f"port {port} answered {answer.status}, whole: {answer.whole}")
                seen.append(answer)

    await asyncio.gather(*[keep_busy() for _ in range(connections)])
    took = time.perf_counter() - started
    return Loaded(tuple(seen), took, (time.process_time() - cpu) / took)


async def streams(port: int, requests: Requests, number: int, *, over: float) -> Loaded:
    """Open `number` streams, the first at once and the last after `over` seconds, and read each to its end.

    A stream that fails is in the result; nothing is raised.
    """
    asked = requests.conversations()
    started, cpu = time.perf_counter(), time.process_time()

    async def one(index: int) -> Seen:
        await asyncio.sleep(over * index / number)
        sent = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE), line(port) as connection:
                return await connection.exchange(next(asked))
        except (OSError, TimeoutError):
            return Seen(0, sent, 0.0, time.perf_counter(), 0, whole=False)

    seen = await asyncio.gather(*[one(index) for index in range(number)])
    took = time.perf_counter() - started
    return Loaded(tuple(seen), took, (time.process_time() - cpu) / took)
