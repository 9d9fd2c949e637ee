"""The connections to upstreams that carry plain requests: made when needed, kept while of use, looked at by one timer.

One look every so often serves the time-outs of all connections: a timer for each request would cost more than the
request's own bytes. It knows nothing of what is sent.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from aiohappyeyeballs import start_connection

from proxy.failures import Unreachable, reason
from proxy.http1 import Line, PlainAnswer
from proxy.settings import Timeouts

KEEP_ALIVE: Final = 4.0
"""Below what servers commonly grant an idle connection (5 s), so that none is used while the other side closes it."""

_LOOK_SECONDS: Final = 0.25
_SECOND_ADDRESS: Final = 0.25
"""When to try the next address of a host beside one that does not answer (RFC 8305, section 8)."""

_PORTS: Final = {"http": 80, "https": 443}
_NO_BODY_SAID: Final = frozenset({"GET", "DELETE", "OPTIONS", "TRACE"})


@dataclass(slots=True)
class _Origin:
    """A server. `lines` are its connections, `free` those of them that wait for a request, the last used at the end."""

    host: str
    port: int
    tls: bool
    named: bytes
    lines: set[Line] = field(default_factory=set)
    free: deque[Line] = field(default_factory=deque)

    def forget(self, line: Line) -> None:
        """Keep no connection that is no more."""
        self.lines.discard(line)
        with suppress(ValueError):
            self.free.remove(line)


class Pool:
    """Connections of one worker. Make it inside the event loop and close it there. `trust` makes the TLS context."""

    def __init__(self, timeouts: Timeouts, trust: Callable[[], ssl.SSLContext]) -> None:
        self._timeouts = timeouts
        self._trust = trust
        self._context: ssl.SSLContext | None = None
        self._origins: dict[str, _Origin] = {}
        self._loop = asyncio.get_running_loop()
        waits = (timeouts.first_byte, timeouts.idle)
        self._every = min(_LOOK_SECONDS, min(waits) / 4)
        self._looking = self._loop.call_later(self._every, self._look)

    async def send(self, method: str, url: str, headers: list[tuple[bytes, bytes]], body: bytes | None) -> PlainAnswer:
        """Send a request and return when the head of its answer is there. `url` is sent as it is, encoded.

        Raises:
            Unreachable: No answer came.
        """
        start = url.find("/", url.find("://") + 3)
        origin = self._origins.get(url[:start]) or self._origin(url[:start])
        head = [b"%s %s HTTP/1.1\r\nhost: %s\r\n" % (method.encode(), url[start:].encode("latin-1"), origin.named)]
        head += [b"%s: %s\r\n" % header for header in headers]
        if body is not None or method not in _NO_BODY_SAID:
            head.append(b"content-length: %d\r\n" % len(body or b""))
        head.append(b"\r\n")
        line = self._take(origin) or await self._connect(origin)
        return await line.send(b"".join(head), body, first_byte=self._timeouts.first_byte, idle=self._timeouts.idle)

    def close(self) -> None:
        """Close every connection."""
        self._looking.cancel()
        for line in [line for origin in self._origins.values() for line in origin.lines]:
            line.abort()

    def _origin(self, base: str) -> _Origin:
        parts = urlsplit(base)
        host = parts.hostname or ""
        named = parts.netloc.replace(host, host.encode("idna").decode()) if not host.isascii() else parts.netloc
        port = parts.port or _PORTS[parts.scheme]
        made = _Origin(host=host, port=port, tls=parts.scheme == "https", named=named.encode())
        self._origins[base] = made
        return made

    def _take(self, origin: _Origin) -> Line | None:
        now = self._loop.time()
        while origin.free:
            line = origin.free.pop()
            if line.usable and now - line.free_since < KEEP_ALIVE:
                return line
            line.abort()
        return None

    async def _connect(self, origin: _Origin) -> Line:
        try:
            async with asyncio.timeout(self._timeouts.connect):
                found = await self._loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
                connected = await start_connection(
                    found, happy_eyeballs_delay=_SECOND_ADDRESS, interleave=1, loop=self._loop
                )
                line = await self._begun(connected, origin)
        except TimeoutError as error:
            raise Unreachable("it could not be connected to in time", timed_out=True) from error
        except (OSError, ValueError) as error:
            raise Unreachable(reason(error), timed_out=False) from error
        origin.lines.add(line)
        return line

    async def _begun(self, connected: socket.socket, origin: _Origin) -> Line:
        """Return the line that speaks over a socket, after the TLS handshake where there is one."""
        tls, named = (self._tls(), origin.host) if origin.tls else (None, None)
        try:
            _, line = await self._loop.create_connection(
                lambda: Line(origin.free.append, origin.forget), sock=connected, ssl=tls, server_hostname=named
            )
        except BaseException:  # a cancelled connect too must leave no socket open
            connected.close()
            raise
        return line

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = self._trust()
        return self._context

    def _look(self) -> None:
        """End what has waited for too long, and connections that nobody wanted for a while."""
        now = self._loop.time()
        for origin in self._origins.values():
            for line in list(origin.lines):
                line.expire(now)
            # The last used stands at the end.
            while origin.free and now - origin.free[0].free_since >= KEEP_ALIVE:
                origin.free.popleft().abort()
        self._looking = self._loop.call_later(self._every, self._look)
