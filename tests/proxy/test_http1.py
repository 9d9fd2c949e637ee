"""The connections that plain requests take, against servers that do as they like."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from proxy.failures import Broken, Unreachable
from proxy.http1 import BUFFER_BYTES
from proxy.settings import Settings
from proxy.upstream import HttpUpstream
from tests.conftest import StartUpstream
from tests.proxy.test_upstream import fetch, read
from tests.upstreams import RawUpstream, Script, Seen, Step, answer, chunk, chunked_head

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def twice(script: Script, start_upstream: StartUpstream) -> tuple[list[bytes], int]:
    """Two requests, one after the other: what was answered, and over how many connections."""
    upstream = start_upstream(script)
    client = HttpUpstream(Settings())
    try:
        answers = [await read(await client.send("GET", f"{upstream.base_url}/x", [], None)) for _ in range(2)]
    finally:
        await client.close()
    return answers, upstream.connections


def _served_over_tls(folder: Path) -> tuple[ssl.SSLContext, Path]:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return context, folder / "ca.pem"


async def test_tls_is_verified_and_an_authority_can_be_added(tmp_path: Path) -> None:
    context, authority = _served_over_tls(tmp_path)
    with RawUpstream(lambda _: [answer(b"{}")], tls=context) as upstream:
        assert await fetch(upstream.base_url, server={"ca_file": str(authority)}) == b"{}"
        with pytest.raises(Unreachable, match="certificate was not accepted"):
            await fetch(upstream.base_url)


async def test_a_connection_that_the_upstream_just_closed_carries_no_further_request() -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)

        async def serve() -> socket.socket:
            line, _ = await loop.sock_accept(listening)
            await loop.sock_recv(line, 65536)
            await loop.sock_sendall(line, OK)
            return line

        client = HttpUpstream(Settings())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1/x"
        first = asyncio.create_task(serve())
        assert await read(await client.send("POST", url, [], b"1")) == b"{}"
        (await first).close()
        second = asyncio.create_task(serve())
        # Nothing is read in between: the loop does not turn before the connection is chosen.
        assert await read(await client.send("POST", url, [], b"2")) == b"{}"
        (await second).close()
        await client.close()


async def test_the_bytes_of_headers_are_sent_as_they_came(start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer(b"{}")])
    client = HttpUpstream(Settings())
    sent = [(b"x-latin", b"caf\xe9"), (b"x-empty", b""), (b"x-twice", b"1"), (b"x-twice", b"2")]
    await read(await client.send("POST", f"{upstream.base_url}/x?a=%2F&&b", sent, b"body"))
    await client.close()
    seen = upstream.seen[0]
    assert (seen.line, seen.body) == ("POST /v1/x?a=%2F&&b HTTP/1.1", b"body")
    head = [line.partition(b":") for line in seen.head.split(b"\r\n")[1:]]
    assert [(name, value.strip()) for name, _, value in head][1:-1] == sent


@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_an_answer_is_the_same_however_it_is_cut(start_upstream: StartUpstream, size: int) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    whole = early + chunked_head() + chunk(b"data: caf\xc3\xa9\r\n\r\n") + chunk(b"x" * 5000) + chunk(b"")
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    answers, connections = await twice(lambda _: pieces, start_upstream)
    assert (answers, connections) == ([b"data: caf\xc3\xa9\r\n\r\n" + b"x" * 5000] * 2, 1)


async def test_what_is_taken_while_a_read_waits_is_not_read_again(start_upstream: StartUpstream) -> None:
    """Pieces that are refused, and the last one, are read."""
    said = threading.Event()
    letters = b"abcde"

    def script(_: Seen) -> Iterator[Step]:
        yield chunked_head()
        for number in range(len(letters)):
            said.wait(5)
            said.clear()
            last = number + 1 == len(letters)
            yield chunk(letters[number : number + 1]) + (chunk(b"") if last else b"")

    client = HttpUpstream(Settings())
    got = await client.send("GET", f"{start_upstream(script).base_url}/x", [], None)
    taken, pieces = [], []

    def take(piece: bytes) -> bool:
        if piece == b"c":
            return False
        taken.append(piece)
        said.set()
        return True

    got.take = take
    loop = asyncio.get_running_loop()
    loop.call_soon(said.set)
    while piece := await got.read():
        pieces.append(piece)
        # Not before the next read waits.
        loop.call_soon(said.set)
    got.close()
    await client.close()
    assert (b"".join(taken), b"".join(pieces)) == (b"abd", b"ce")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(OK + OK, id="two answers at once"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", id="it will close"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", id="HTTP/1.0"),
    ],
)
async def test_a_connection_that_cannot_be_trusted_is_not_used_again(start_upstream: StartUpstream, raw: bytes) -> None:
    answers, connections = await twice(lambda _: [raw], start_upstream)
    assert (answers, connections) == ([b"{}", b"{}"], 2)


async def test_what_comes_unasked_is_no_answer_to_the_next_request(start_upstream: StartUpstream) -> None:
    unasked = threading.Event()
    upstream = start_upstream(lambda _: [OK, unasked, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray", "hold"])
    client = HttpUpstream(Settings())
    first = await client.send("GET", f"{upstream.base_url}/x", [], None)
    assert await read(first) == b"{}"
    unasked.set()
    await asyncio.to_thread(upstream.wait_closed)
    assert await read(await client.send("GET", f"{upstream.base_url}/x", [], None)) == b"{}"
    await client.close()


async def test_an_answer_before_the_request_was_taken_is_relayed(start_upstream: StartUpstream) -> None:
    refused = answer(b'{"error":"too large"}', status=413)
    upstream = start_upstream(lambda _: [refused, "hold"], reads_body=False)
    client = HttpUpstream(Settings())
    got = await client.send("POST", f"{upstream.base_url}/x", [], b"x" * (32 << 20))
    assert (got.status, await read(got)) == (413, b'{"error":"too large"}')
    await client.close()


async def test_silence_in_an_answer_breaks_it(start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(b"one"), "hold"])
    with pytest.raises(Broken, match="silent"):
        await fetch(upstream.base_url, timeouts={"idle": 0.1})


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 80_000, "headers are too long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}", "not HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", "not HTTP"),
        (b"", "closed the connection"),
    ],
)
async def test_what_is_no_answer_is_said_to_be_none(start_upstream: StartUpstream, raw: bytes, said: str) -> None:
    upstream = start_upstream(lambda _: [raw, "close"])
    with pytest.raises(Unreachable, match=said):
        await fetch(upstream.base_url)


async def test_a_broken_chunk_breaks_the_answer(start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [chunked_head() + chunk(b"one") + b"zz\r\nnonsense", "hold"])
    with pytest.raises(Broken):
        await fetch(upstream.base_url)


async def test_an_upstream_waits_while_nobody_reads(start_upstream: StartUpstream) -> None:
    count, pushed = 512, []

    def script(_: Seen) -> Iterator[Step]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (count * 65_536)
        for _number in range(count):
            yield b"x" * 65_536
            pushed.append(65_536)

    upstream = start_upstream(script)
    client = HttpUpstream(Settings())
    got = await client.send("GET", f"{upstream.base_url}/x", [], None)
    before = -1
    while before != len(pushed):
        # Until the sockets' buffers are full, which no event tells.
        before = len(pushed)
        for _ in range(500):
            await asyncio.sleep(0)
    waiting = await got.read()
    assert len(waiting) <= 2 * BUFFER_BYTES
    assert len(waiting) + len(await read(got)) == count * 65_536
    await client.close()
