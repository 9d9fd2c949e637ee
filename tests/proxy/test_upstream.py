from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from proxy.answers import Answer
from proxy.failures import Broken, Unreachable
from proxy.headers import downward, upward
from proxy.settings import Settings
from proxy.upstream import HttpUpstream
from tests.conftest import StartUpstream
from tests.upstreams import answer, chunk, chunked_head


async def fetch(base_url: str, **settings: Any) -> bytes:
    upstream = HttpUpstream(Settings.model_validate(settings))
    try:
        return await read(await upstream.send("GET", f"{base_url}/x", [], None))
    finally:
        await upstream.close()


async def read(got: Answer) -> bytes:
    pieces = []
    try:
        while piece := await got.read():
            pieces.append(piece)
    finally:
        got.close()
    return b"".join(pieces)


async def test_an_answer_is_read_as_it_comes(start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(b"one"), chunk(b"two"), chunk(b"")])
    assert await fetch(upstream.base_url) == b"onetwo"


async def test_nobody_there_is_told_from_nobody_answering(start_upstream: StartUpstream) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unreachable) as down:
        await fetch(f"http://127.0.0.1:{port}/v1")
    with pytest.raises(Unreachable) as slow:
        await fetch(start_upstream(lambda _: ["hold"]).base_url, timeouts={"first_byte": 0.1})
    assert (down.value.timed_out, slow.value.timed_out) == (False, True)


@pytest.mark.parametrize("raw", [b"nonsense\r\n\r\n", b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"])
async def test_what_is_no_answer_is_none(start_upstream: StartUpstream, raw: bytes) -> None:
    upstream = start_upstream(lambda _: [raw, "close"])
    with pytest.raises(Unreachable):
        await fetch(upstream.base_url)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"])
async def test_an_answer_that_ends_with_its_connection_is_broken_by_a_reset(
    start_upstream: StartUpstream, head: bytes
) -> None:
    with pytest.raises(Broken):
        await fetch(start_upstream(lambda _: [head, b"half an ans", "reset"]).base_url)
    with pytest.raises(Broken):
        await fetch(start_upstream(lambda _: [head + b"half an ans", "reset"]).base_url)
    assert await fetch(start_upstream(lambda _: [head, b"a whole one", "close"]).base_url) == b"a whole one"


async def test_where_an_upstream_is_stays_unsaid() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unreachable) as down:
        await fetch(f"http://127.0.0.1:{port}/v1")
    assert (str(port) in str(down.value), "127.0.0.1" in str(down.value)) == (False, False)


async def test_an_answer_that_is_cut_is_broken(start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour", "close"])
    with pytest.raises(Broken):
        await fetch(upstream.base_url)


async def test_large_response_headers_are_taken(start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer(b"{}", headers=[("x-large", "x" * 60_000)])])
    assert await fetch(upstream.base_url) == b"{}"


async def test_an_idle_connection_is_used_again(start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer(b"{}")])
    client = HttpUpstream(Settings())
    for _ in range(3):
        await read(await client.send("GET", f"{upstream.base_url}/x", [], None))
    await client.close()
    assert (len(upstream.seen), upstream.connections) == (3, 1)


async def test_an_upload_that_is_streamed_keeps_its_pieces(start_upstream: StartUpstream) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    upstream = start_upstream(lambda _: [answer(b"{}")])
    client = HttpUpstream(Settings())
    await read(await client.send("POST", f"{upstream.base_url}/x", [], pieces()))
    await client.close()
    assert upstream.seen[0].body == b"onetwo"


@pytest.mark.parametrize(
    ("shown", "key", "own", "sent"),
    [
        ([("authorization", "Bearer me")], None, True, [("authorization", "Bearer me")]),
        ([("authorization", "Bearer me")], "paid", False, [("authorization", "Bearer paid")]),
        ([("x-api-key", "me")], "paid", False, [("x-api-key", "paid")]),
        ([("x-api-key", "me"), ("authorization", "Bearer me")], None, True, [("authorization", "Bearer me")]),
        ([("authorization", "Bearer a"), ("authorization", "Bearer b")], None, True, [("authorization", "Bearer b")]),
        ([("authorization", "Bearer me")], None, False, []),
        ([], "paid", False, [("authorization", "Bearer paid")]),
        ([], None, True, []),
    ],
)
def test_exactly_one_credential_goes_up(
    shown: list[tuple[str, str]], key: str | None, own: bool, sent: list[tuple[str, str]]
) -> None:
    headers = [(name.encode(), value.encode()) for name, value in shown]
    assert upward(headers, key=key, own=own) == [(name.encode(), value.encode()) for name, value in sent]


def test_an_upstreams_own_headers_of_our_name_do_not_come_down() -> None:
    headers = [(b"X-Tfgrpo-Set", b"other@1"), (b"Set-Cookie", b"a=b"), (b"Connection", b"x-hop"), (b"X-Hop", b"1")]
    assert downward(headers) == [(b"set-cookie", b"a=b")]


async def test_an_outbound_proxy_of_the_environment_is_honoured_where_that_is_wanted(
    start_upstream: StartUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = start_upstream(lambda _: [answer(b"{}")])
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{gateway.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert await fetch("http://provider.invalid/v1", server={"trust_env": True}) == b"{}"
    assert gateway.seen[0].target == "http://provider.invalid/v1/x"


def test_every_connection_header_names_what_stays_behind() -> None:
    headers = [(b"connection", b"x-one"), (b"connection", b"x-two, keep-alive"), (b"x-one", b"1"), (b"x-two", b"2")]
    assert upward(headers, key=None, own=True) == []
    assert downward(headers) == []
