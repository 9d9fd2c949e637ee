"""What the connections to clients and to upstreams have in common. It knows neither."""

from __future__ import annotations

import asyncio
import select
from typing import Final

HEADER_BYTES: Final = 64 * 1024
"""The longest head of a request or of an answer."""

_LEFT: Final = getattr(select, "POLLRDHUP", 0)


class Peer:
    """The other side of a connection.

    Where the system tells of its leaving before that is read (Linux), it is known although nothing is being read.
    """

    __slots__ = ("_poll",)

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        self._poll = select.poll()
        self._poll.register(transport.get_extra_info("socket").fileno(), _LEFT)

    def left(self) -> bool:
        """Whether it closed its side, or the connection is no more."""
        return bool(self._poll.poll(0))
