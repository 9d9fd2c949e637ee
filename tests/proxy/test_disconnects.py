"""A client that goes away cancels the upstream call within a second, in every phase, on every kind of endpoint."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from proxy.client import Client, Gone, Message
from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.raw_client import raw, read_until
from tests.stubborn import Deaf, blackhole, fill
from tests.upstreams import chunk, chunked_head, event

PATHS = ["/v1/chat/completions", "/v1/files"]


def post(proxy: RunningProxy, path: str, length: int, body: bytes) -> socket.socket:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n".encode()
    return raw(proxy.port, head + body)


def leave(line: socket.socket, how: str = "close") -> float:
    """Leave, and return when that was."""
    if how == "half-close":
        line.shutdown(socket.SHUT_WR)
    else:
        if how == "reset":
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.close()
    return time.monotonic()


def only_outcome(proxy: RunningProxy) -> str:
    (exchange,) = proxy.recorded()
    return exchange.outcome


@pytest.mark.parametrize("path", PATHS)
def test_while_connecting(start_proxy: StartProxy, path: str) -> None:
    with blackhole() as address:
        proxy = start_proxy(address)
        line = post(proxy, path, 2, b"{}")
        wait_in_flight(proxy, 1)
        left = leave(line)
        wait_in_flight(proxy, 0)
        assert time.monotonic() - left < 1
        assert only_outcome(proxy) == "aborted"


def wait_in_flight(proxy: RunningProxy, count: int) -> None:
    until = time.monotonic() + 5
    while proxy.request("GET", "/status").json["in_flight"] != count:
        assert time.monotonic() < until


@pytest.mark.parametrize("how", ["close", "half-close", "reset"])
def test_while_a_whole_body_is_sent_up(start_proxy: StartProxy, how: str) -> None:
    with Deaf() as upstream:
        proxy = start_proxy(upstream.base_url)
        line = post(proxy, PATHS[0], 20 << 20, bytes(20 << 20))
        upstream.wait_connected()
        left = leave(line, how)
        assert upstream.wait_closed() - left < 1
        assert only_outcome(proxy) == "aborted"
        line.close()


@pytest.mark.parametrize("size", [10, 100_000])
def test_while_a_body_is_streamed_up(start_proxy: StartProxy, size: int) -> None:
    with Deaf() as upstream:
        proxy = start_proxy(upstream.base_url)
        line = post(proxy, PATHS[1], 20 << 20, bytes(size))
        upstream.wait_connected()
        left = leave(line)
        assert upstream.wait_closed() - left < 1
        assert only_outcome(proxy) == "aborted"


def test_while_an_upstream_takes_none_of_a_body_that_is_streamed_up(start_proxy: StartProxy) -> None:
    with Deaf() as upstream:
        proxy = start_proxy(upstream.base_url)
        line = post(proxy, PATHS[1], 200 << 20, b"")
        upstream.wait_connected()
        assert fill(line, 200 << 20) < 64 << 20
        left = leave(line, "reset")
        assert upstream.wait_closed() - left < 1
        assert only_outcome(proxy) == "aborted"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", ["close", "half-close", "reset"])
def test_while_waiting_for_the_first_byte(
    start_proxy: StartProxy, start_upstream: StartUpstream, path: str, how: str
) -> None:
    upstream = start_upstream(lambda _: ["hold"])
    proxy = start_proxy(upstream.base_url)
    line = post(proxy, path, 2, b"{}")
    upstream.wait_seen()
    left = leave(line, how)
    assert upstream.wait_closed() - left < 1
    assert only_outcome(proxy) == "aborted"
    line.close()


@pytest.mark.parametrize("path", PATHS)
def test_in_mid_stream(start_proxy: StartProxy, start_upstream: StartUpstream, path: str) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(event("1")), "hold"])
    proxy = start_proxy(upstream.base_url)
    line = post(proxy, path, 2, b"{}")
    read_until(line, b"data: 1")
    left = leave(line)
    assert upstream.wait_closed() - left < 1
    assert only_outcome(proxy) == "aborted"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", ["close", "half-close", "reset"])
def test_while_the_client_takes_nothing(start_proxy: StartProxy, path: str, how: str) -> None:
    with Deaf() as upstream:
        proxy = start_proxy(upstream.base_url)
        line = post(proxy, path, 2, b"{}")
        upstream.wait_connected()
        read_until(upstream.line, b"{}")
        upstream.line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 209715200\r\n\r\n")
        read_until(line, b"\r\n\r\n")
        fill(upstream.line, 200 << 20)
        left = leave(line, how)
        assert upstream.wait_closed() - left < 1
        assert only_outcome(proxy) == "aborted"
        line.close()


@dataclass
class Line:
    """A connection that a test ends by hand."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    lost: bool = False
    on_lost: Callable[[], None] | None = None

    def pass_on(self, piece: bytes) -> bool:
        raise AssertionError(piece)


async def receive() -> Message:
    raise AssertionError


async def send(_: Message) -> None:
    raise AssertionError


async def test_while_anything_of_ours_is_waited_for() -> None:
    line = Line()

    async def serve() -> None:
        client = Client(receive, send, line)
        with client.watched():
            waiting.set()
            await asyncio.get_running_loop().create_future()

    waiting = asyncio.Event()
    serving = asyncio.create_task(serve())
    await waiting.wait()
    assert line.on_lost is not None
    line.on_lost()
    with pytest.raises(Gone):
        await serving
    assert serving.cancelling() == 0


async def test_a_client_that_left_before_is_gone_already() -> None:
    line = Line(lost=True)
    with pytest.raises(Gone), Client(receive, send, line).watched():
        pytest.fail("it began")
