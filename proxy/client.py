"""The client's side of one exchange: its body, whether it is still there, what it is answered.

The connection says when a client goes away, in whatever phase, and the exchange's task is cancelled. It does not know
what is relayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Protocol

from proxy.errors import ProxyError, envelope, too_large

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Line(Protocol):
    """A client's connection: it calls `on_lost` when it ends."""

    loop: asyncio.AbstractEventLoop
    lost: bool
    on_lost: Callable[[], None] | None

    def pass_on(self, piece: bytes) -> bool:
        """Send a piece of an answer in chunks at once; False: it was not, for it would have to wait."""


class Gone(Exception):  # noqa: N818 - reads as what it says where it is caught
    """The client went away."""


class Expired(Exception):  # noqa: N818 - as above
    """The exchange took longer than it may."""


class Client:
    """Made inside the task of the exchange, which is the one that is cancelled when the client goes away."""

    def __init__(self, receive: Receive, send: Send, line: Line | None = None) -> None:
        self._receive = receive
        self._send = send
        self._line = line
        # Asking which loop runs is a system call; the connection knows.
        self._task = asyncio.current_task(line.loop if line is not None else None)
        self._stopped: type[Gone | Expired] | None = None
        self.answered = False
        """Whether a status was sent: from then on there is no other answer."""

    async def read(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            Gone: The client went away before its end.
            ProxyError: 413, the body is longer than `limit`.
        """
        message = await self._receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body", False) or message["type"] == "http.disconnect":
            body = await self._read_on(message, limit)
        if len(body) > limit:
            raise too_large(limit)
        return body

    async def chunks(self, copy: Callable[[bytes], None]) -> AsyncIterator[bytes]:
        """Yield the body as it comes, no faster than it is taken; `copy` sees each piece first."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._leave()
                raise Gone
            more = message.get("more_body", False)
            if message.get("body"):
                copy(message["body"])
                yield message["body"]

    @contextmanager
    def watched(self, seconds: float | None = None) -> Iterator[None]:
        """Cancel the exchange's task when the client goes away inside the block, then raise Gone in its place.

        Likewise Expired after `seconds` (None: never).
        """
        if self._line is not None:
            if self._line.lost:
                raise Gone
            self._line.on_lost = self._leave
        ending = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self._stop, Expired)
        try:
            yield
        except asyncio.CancelledError:
            if self._stopped is None:
                raise
            if self._task is not None:
                self._task.uncancel()
            raise self._stopped from None
        finally:
            if ending is not None:
                ending.cancel()
            if self._line is not None:
                self._line.on_lost = None

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the head of the answer."""
        self.answered = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def send(self, body: bytes, *, more: bool) -> None:
        """Send a piece of the body, waiting while the client takes none."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    def pass_on(self, piece: bytes) -> bool:
        """Send a piece of the body at once; False: it was not, and has to go by `send`."""
        return self._line is not None and self._line.pass_on(piece)

    async def refuse(self, error: ProxyError, api: str | None = None, exchange_id: str | None = None) -> None:
        """Answer with an error of ours."""
        status, headers, body = envelope(error, api, exchange_id)
        await self.start(status, headers)
        await self.send(body, more=False)

    async def _read_on(self, message: Message, limit: int) -> bytes:
        pieces = []
        size = 0
        while message["type"] != "http.disconnect":
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > limit or not message.get("more_body", False):
                return b"".join(pieces)
            message = await self._receive()
        raise Gone

    def _leave(self) -> None:
        self._stop(Gone)

    def _stop(self, why: type[Gone | Expired]) -> None:
        if self._stopped is None and self._task is not None:
            self._stopped = why
            self._task.cancel()
