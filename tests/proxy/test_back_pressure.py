"""A slow side slows the other one down: how much goes in before it stops is what the proxy and two kernels hold."""

from __future__ import annotations

import pytest

from tests.conftest import StartProxy
from tests.raw_client import raw, read_until
from tests.stubborn import Deaf, fill

WHOLE = 200 << 20
HELD = 40 << 20


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
@pytest.mark.parametrize("framing", [f"Content-Length: {WHOLE}", "Transfer-Encoding: chunked"])
def test_an_answer_waits_for_a_client_that_takes_nothing(start_proxy: StartProxy, path: str, framing: str) -> None:
    chunk = b"" if "Length" in framing else f"{WHOLE:x}\r\n".encode()
    with Deaf() as upstream:
        proxy = start_proxy(upstream.base_url)
        with raw(proxy.port, f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{{}}".encode()) as line:
            upstream.wait_connected()
            read_until(upstream.line, b"{}")
            upstream.line.sendall(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode() + chunk)
            read_until(line, b"\r\n\r\n")
            assert fill(upstream.line, WHOLE) < HELD


@pytest.mark.parametrize("framing", [f"content-length: {WHOLE}", "transfer-encoding: chunked"])
def test_an_upload_waits_for_an_upstream_that_takes_nothing(start_proxy: StartProxy, framing: str) -> None:
    with Deaf() as upstream:
        proxy = start_proxy(upstream.base_url)
        chunk = b"" if "length" in framing else f"{WHOLE:x}\r\n".encode()
        with raw(proxy.port, f"POST /v1/files HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n".encode() + chunk) as line:
            upstream.wait_connected()
            assert fill(line, WHOLE) < HELD


def test_copies_in_flight_are_bounded_together(start_proxy: StartProxy) -> None:
    with Deaf() as upstream:
        proxy = start_proxy(upstream.base_url, recorder={"queue_bytes": 1 << 20})
        size = 4 << 20
        with raw(proxy.port, b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}") as line:
            upstream.wait_connected()
            read_until(upstream.line, b"{}")
            upstream.line.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode() + bytes(size))
            read_until(line, b"\r\n\r\n" + bytes(1000))
            got = 1000
            while got < size - 300_000:
                got += len(line.recv(65536))
            held = proxy.request("GET", "/status").json["recorder"]["queued_bytes"]
        assert 0 < held <= 1 << 20
        (exchange,) = proxy.recorded()
    assert exchange.truncated
