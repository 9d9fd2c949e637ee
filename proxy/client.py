"""The client's side of one exchange: its body, whether it is still there, what it is answered.

The server tells of a client that went away only to whoever listens: whoever reads the body, and from then on a watcher,
which cancels the exchange's task. The watcher starts after a moment, for most exchanges are over before it would be of
use, and one more task costs as much as reading and changing the request. It does not know what is relayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from proxy.errors import ProxyError, envelope

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


UNWATCHED_SECONDS = 0.2
"""How long a client may have left before it is noticed."""


class Gone(Exception):  # noqa: N818 - reads as what it says where it is caught
    """The client went away."""


class Client:
    """Made inside the task of the exchange, which is the one that is cancelled when the client goes away."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._task = asyncio.current_task()
        self._body_read = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self.gone = False
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
            raise ProxyError(413, f"the body is longer than {limit} bytes", code="request_too_large")
        self._body_read.set()
        return body

    async def chunks(self, copy: Callable[[bytes], None]) -> AsyncIterator[bytes]:
        """Yield the body as it comes, no faster than it is taken; `copy` sees each piece first."""
        try:
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
        finally:
            self._body_read.set()

    @contextmanager
    def watched(self, *, reading: bool) -> Iterator[None]:
        """Cancel the exchange's task when the client goes away inside the block, then raise Gone in its place.

        `reading`: the body is read by `chunks`, and the watcher waits until that has ended.
        """
        if not reading:
            self._body_read.set()
        watching = asyncio.get_running_loop().call_later(UNWATCHED_SECONDS, self._start_watching)
        try:
            yield
        except asyncio.CancelledError:
            if not self.gone:
                raise
            if self._task is not None:
                self._task.uncancel()
            raise Gone from None
        finally:
            watching.cancel()
            if self._watcher is not None:
                self._watcher.cancel()

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the head of the answer."""
        self.answered = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def send(self, body: bytes, *, more: bool) -> None:
        """Send a piece of the body, waiting while the client takes none."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

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
        self.gone = True
        raise Gone

    def _start_watching(self) -> None:
        self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        await self._body_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self.gone = True
        if self._task is not None:
            self._task.cancel()
