"""Peers that do not take what they are sent: an address where nobody answers, an upstream that reads when told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from tests.upstreams import PATIENCE


@contextmanager
def blackhole() -> Iterator[str]:
    """The base URL of a port whose queue of connections is full: a further one is neither accepted nor refused."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = listening.getsockname()
        for _ in range(4):
            line = stack.enter_context(socket.socket())
            line.setblocking(False)
            line.connect_ex(address)
        yield f"http://127.0.0.1:{address[1]}/v1"


class Deaf:
    """An upstream that accepts one connection and reads nothing of it but what `take` asks for."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._accepted = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.line: socket.socket
        self.base_url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        if self._accepted.is_set():
            self.line.close()

    def wait_connected(self) -> None:
        assert self._accepted.wait(PATIENCE), "nobody connected"

    def take(self, size: int) -> bytes:
        """Read up to `size` bytes, fewer when the peer closes."""
        got = bytearray()
        while len(got) < size and (piece := self.line.recv(min(65536, size - len(got)))):
            got += piece
        return bytes(got)

    def wait_closed(self) -> float:
        """Read what is under way, and return when the peer had closed the connection."""
        with suppress(ConnectionError):
            while self.line.recv(65536):
                pass
        return time.monotonic()

    def _accept(self) -> None:
        self.line, _ = self._listening.accept()
        self.line.settimeout(PATIENCE)
        self._accepted.set()


def fill(line: socket.socket, most: int, *, quiet: float = 0.3) -> int:
    """Send up to `most` bytes, until the peer has taken none for `quiet` seconds. Return how many went out."""
    line.settimeout(quiet)
    sent = 0
    piece = bytes(65536)
    try:
        while sent < most:
            sent += line.send(piece[: most - sent])
    except TimeoutError:
        pass
    line.settimeout(PATIENCE)
    return sent
