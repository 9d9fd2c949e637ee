"""How an HTTP/1.0 client learns where an answer ends whose length nobody knows: the connection ends with it.

The server below would send it in chunks, which such a client takes for the body (RFC 9112, 6.1 forbids that). What
then tells half an answer from a whole one is how its connection ends: a whole one's is closed, a half one's is reset.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from proxy.client import Message, Send

_NOW: Final = struct.pack("ii", 1, 0)
"""To close with a reset (SO_LINGER on, no time)."""


class UntilClose:
    """Stands before the answer of one request, and before its transport."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._send: Send = cycle.send  # type: ignore[assignment] # a message is a message
        self._transport = cycle.transport
        self._endless = False
        cycle.send = self.send  # type: ignore[method-assign, assignment] # the cycle is the server's to make
        cycle.transport = self  # type: ignore[assignment] # all that is asked of one

    def __getattr__(self, name: str) -> Any:
        """The transport's own."""
        return getattr(self._transport, name)

    async def send(self, message: Message) -> None:
        """Send the head without chunks, and a body of any length."""
        if message["type"] == "http.response.start":
            self._endless = all(name.lower() != b"content-length" for name, _ in message["headers"])
            if self._endless:
                self._cycle.chunked_encoding = False
        elif self._endless and message["type"] == "http.response.body":
            self._cycle.expected_content_length = len(message.get("body", b""))
        await self._send(message)

    def close(self) -> None:
        """Close, so that the client can tell what it has."""
        if self._endless and not self._cycle.response_complete:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOW)
            self._transport.abort()
        else:
            self._transport.close()
