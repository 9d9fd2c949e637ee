"""What a client's transport is to the server: one that sends a head together with the body that follows at once.

The server writes the two one after the other. Put together they are one system call here, one packet on the wire and
one wake-up of the client, on each request. A head that nothing follows before the event loop's next turn goes alone.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

_HEAD: Final = b"HTTP/1.1 "
_JOINED: Final = 64 * 1024
"""Joining more bytes than this costs more than the call it saves."""


class Together:
    """Stands before a transport; all but writing and closing goes straight through."""

    __slots__ = ("_head", "_loop", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        """The transport's own."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, or keep a head for a moment."""
        head = self._head
        if head is None:
            if data.startswith(_HEAD):
                self._head = data
                self._loop.call_soon(self._flush)
            else:
                self._transport.write(data)
            return
        self._head = None
        if len(data) <= _JOINED:
            self._transport.write(head + data)
        else:
            self._transport.writelines((head, data))

    def write_eof(self) -> None:
        """Write what is kept, and say that this was all."""
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        """Write what is kept, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            self._transport.write(head)
