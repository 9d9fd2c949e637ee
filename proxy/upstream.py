"""The way to a provider: bytes out, bytes in, nothing added, nothing decoded, nothing sent twice.

`HttpUpstream` is the port to every upstream that speaks the API it is called with. It translates failures:
`Unreachable` before the head of an answer came, `Broken` after. It knows nothing of apps, sets or records.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from proxy.answers import Answer, Take
from proxy.errors import ProxyError
from proxy.failures import Broken, Unreachable, reason
from proxy.pool import KEEP_ALIVE, Pool
from proxy.settings import Settings
from proxy.wire import HEADER_BYTES

PIECE_BYTES: Final = 1 << 20
"""A longer body is sent in pieces, so that no write holds up other requests, nor is held in two places."""

_ADDED_BY_AIOHTTP: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_MOST_HEADERS: Final = 1024
_NEVER_A_BODY: Final = (204, 304)
_FIRST_STATUS: Final = 200
_LAST_STATUS: Final = 599


class _GeneralAnswer:
    """An `answers.Answer` that aiohttp reads."""

    take: Take | None = None

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Sequence[tuple[bytes, bytes]] = response.raw_headers
        self.bodiless = response.status in _NEVER_A_BODY
        framed = "content-length" in response.headers or "chunked" in response.headers.get("transfer-encoding", "")
        # An answer that ends with its connection: nothing but how that ended tells a whole one from a cut one.
        self._line = None if framed else getattr(response.content, "_protocol", None)

    @property
    def ended(self) -> bool:
        """Whether everything has been read, and nothing was cut."""
        return self._response.content.at_eof() and not self._reset()

    async def read(self) -> bytes:
        """Return the next bytes as they came; b"" at the end.

        Raises:
            Broken: The upstream cut the answer, or was silent for too long.
        """
        try:
            piece = await self._response.content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Broken(reason(error)) from error
        if not piece and self._reset():
            raise Broken("it reset the connection")
        return piece

    def close(self) -> None:
        """Let go of the connection: back to the pool when all was read, closed otherwise."""
        self._response.close() if not self.ended else self._response.release()

    def _reset(self) -> bool:
        closed = self._line.closed if self._line is not None else None
        return closed is not None and closed.done() and closed.exception() is not None


class _Line(ResponseHandler):
    """A connection that waits for its peer to take a request no longer than `patience` seconds at a time.

    aiohttp begins to wait for an answer when the whole request is sent, and would wait for that for ever.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, patience: float) -> None:
        super().__init__(loop)
        self._patience = patience
        self._unsent = 0
        self._waiting: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """More is to be sent than the peer takes."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """The peer took it."""
        self._stop_waiting()
        super().resume_writing()

    def close(self) -> None:
        """Close at once: what could not be sent yet would keep the connection open until the peer takes it."""
        if self._left():
            self.abort()
        super().close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._unsent = self._left()
        self._waiting = self._loop.call_later(self._patience, self._look)

    def _look(self) -> None:
        self._wait() if self._left() < self._unsent else self._on_read_timeout()

    def _left(self) -> int:
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Connector(aiohttp.TCPConnector):
    """Has each connection remember how it ended, which aiohttp only does for those that ask before."""

    def __init__(self, patience: float, **named: Any) -> None:
        super().__init__(**named)
        self._factory = partial(_made, self._loop, patience)

    async def _create_connection(self, *arguments: Any, **named: Any) -> ResponseHandler:
        line = await super()._create_connection(*arguments, **named)
        if line.closed is not None:
            line.closed.add_done_callback(_seen)
        return line


def _made(loop: asyncio.AbstractEventLoop, patience: float) -> ResponseHandler:
    return _Line(loop, patience)


def _seen(closed: asyncio.Future[None]) -> None:
    """Look at how a connection ended, so that asyncio does not complain that nobody did."""
    if not closed.cancelled():
        closed.exception()


class HttpUpstream:
    """One pool of connections to all upstreams. Make it inside the event loop and close it there."""

    def __init__(self, settings: Settings) -> None:
        timeouts = settings.timeouts
        self._idle = timeouts.idle
        self._plain = Pool(timeouts, lambda: _trusting(settings.server.ca_file))
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                timeouts.first_byte,
                limit=0,
                keepalive_timeout=KEEP_ALIVE,
                ssl=True if settings.server.ca_file is None else _trusting(settings.server.ca_file),
                enable_cleanup_closed=False,
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=timeouts.connect, sock_read=timeouts.first_byte),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_ADDED_BY_AIOHTTP,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
            max_headers=_MOST_HEADERS,
        )
        # A request that was sent may have been carried out; aiohttp would send a GET or PUT again, and has no switch.
        self._session._retry_connection = False  # noqa: SLF001
        self._proxies: Mapping[str, str] = getproxies() if settings.server.trust_env else {}

    async def send(
        self, method: str, url: str, headers: list[tuple[bytes, bytes]], body: bytes | AsyncIterator[bytes] | None
    ) -> Answer:
        """Send a request and return when the head of its answer is there. `url` is sent as it is, encoded.

        Raises:
            Unreachable: No answer came.
            ProxyError: 400, a header is not UTF-8 and could not be sent on as it is.
        """
        if not self._proxies and method != "HEAD" and (body is None or isinstance(body, bytes)):
            return await self._plain.send(method, url, headers, body)
        target = URL(url, encoded=True)
        texts = [(name.decode("latin-1"), _text(name, value)) for name, value in headers]
        if isinstance(body, bytes) and len(body) > PIECE_BYTES:
            texts.append(("content-length", str(len(body))))
            body = _pieces(body)
        try:
            response = await self._session.request(
                method, target, headers=texts, data=body, allow_redirects=False, proxy=self._proxy(target)
            )
        except TimeoutError as error:
            raise Unreachable("it did not answer in time", timed_out=True) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Unreachable(reason(error), timed_out=False) from error
        if not _FIRST_STATUS <= response.status <= _LAST_STATUS:
            response.close()
            raise Unreachable(f"it answered with the status {response.status}", timed_out=False)
        connection = response.connection
        if connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = self._idle
            connection.protocol.start_timeout()
        return _GeneralAnswer(response)

    async def close(self) -> None:
        """Close every connection."""
        self._plain.close()
        await self._session.close()

    def _proxy(self, url: URL) -> str | None:
        if not self._proxies or proxy_bypass(url.raw_host or ""):
            return None
        return self._proxies.get(url.scheme)


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


def host_of(base_url: str) -> str:
    """The host of an upstream, for messages: never a path, a query or a credential."""
    return urlsplit(base_url).netloc


@cache
def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


def _text(name: bytes, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        said = name.decode("latin-1")
        raise ProxyError(400, f"the header {said} is not UTF-8", code="invalid_header", param=said) from error
