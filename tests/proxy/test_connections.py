from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from proxy.connections import Connection
from tests.conftest import StartProxy, StartUpstream
from tests.raw_client import raw, read_until
from tests.upstreams import PATIENCE, answer, chunk, chunked_head, event

POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
FILE = b"POST /v1/files HTTP/1.1\r\nhost: x\r\n"
GET = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"


def talk(port: int, sent: bytes) -> bytes:
    """Send bytes and return all that comes until the proxy closes."""
    with raw(port, sent) as line:
        return rest(line)


def rest(line: socket.socket) -> bytes:
    got = b""
    while piece := line.recv(65536):
        got += piece
    return got


@pytest.mark.parametrize(
    "sent",
    [
        POST + b"content-length: x\r\n\r\n{}",
        POST + b"content-length: -1\r\n\r\n{}",
        POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        POST + b"content-length: 99999999999999999999999\r\n\r\n{}",
        POST + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        POST + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        POST + b"transfer-encoding: gzip\r\n\r\n{}",
        POST + b"transfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
        FILE + b"transfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
        POST + b"x: a\r\n b\r\n\r\n",
        POST + b"x: a\0b\r\n\r\n",
        POST + b"x : a\r\n\r\n",
        POST + b"x\r\n\r\n",
        b"GET /v1/mo\0dels HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v1/mod els HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET v1/models HTTP/1.1\r\nhost: x\r\n\r\n",
        b"get /v1/models HTTP/1.1\r\nhost: x\r\n\r\n",
        b"CONNECT provider:443 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(100),
    ],
)
def test_what_is_no_http_is_a_400_in_json(start_proxy: StartProxy, sent: bytes) -> None:
    head, _, body = talk(start_proxy().port, sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "invalid_http"


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/files"])
def test_a_body_that_is_no_http_ends_its_request(
    start_proxy: StartProxy, start_upstream: StartUpstream, path: bytes
) -> None:
    upstream = start_upstream(lambda _: ["hold"])
    proxy = start_proxy(upstream.base_url)
    sent = b"POST " + path + b" HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"
    with raw(proxy.port, sent) as line:
        line.sendall(b"ZZ\r\n")
        assert rest(line).startswith(b"HTTP/1.1 400 ")
        assert [one.outcome for one in proxy.recorded()] == ["aborted"]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v1/" + b"a" * 70_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        POST + b"x: " + b"a" * 70_000 + b"\r\n\r\n",
        POST + b"x: a\r\n" * 20_000 + b"\r\n",
        POST + b"x: " + b"a" * 1_000_000,
        POST + b"transfer-encoding: chunked\r\n\r\n0\r\nx: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
    ids=["path", "header", "headers", "endless", "trailer"],
)
def test_too_large_a_head_is_a_431(start_proxy: StartProxy, sent: bytes) -> None:
    assert talk(start_proxy().port, sent).startswith(b"HTTP/1.1 431 ")


def test_a_trailer_is_no_header(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url)
    body = b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nauthorization: Bearer late\r\n\r\n"
    with raw(proxy.port, POST + body) as line:
        read_until(line, b"\r\n\r\n")
    assert "authorization" not in upstream.wait_seen().headers


def test_a_coding_that_would_have_to_be_undone_is_a_501(start_proxy: StartProxy) -> None:
    for coding in (b"gzip, chunked", b"gzip\r\ntransfer-encoding: chunked"):
        sent = FILE + b"transfer-encoding: " + coding + b"\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        with raw(start_proxy().port, sent) as line:
            assert read_until(line, b"}").startswith(b"HTTP/1.1 501 ")


def test_connect_is_not_relayed(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    with raw(start_proxy(upstream.base_url).port, b"CONNECT /v1/models HTTP/1.1\r\nhost: x\r\n\r\n") as line:
        assert read_until(line, b"}").startswith(b"HTTP/1.1 405 ")
    assert not upstream.seen


@pytest.mark.parametrize(
    "framing", [b"content-length: 2\r\n\r\n{}", b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"]
)
@pytest.mark.parametrize("cut", [False, True])
def test_a_request_that_asks_for_h2c_arrives_with_its_body(
    start_proxy: StartProxy, start_upstream: StartUpstream, framing: bytes, cut: bool
) -> None:
    upstream = start_upstream(lambda seen: [answer(seen.body)])
    asked = b"connection: Upgrade, HTTP2-Settings, x-hop\r\nupgrade: h2c\r\nhttp2-settings: AAMA\r\nx-hop: 1\r\n"
    head, _, body = framing.partition(b"\r\n\r\n")
    with raw(start_proxy(upstream.base_url).port, POST + asked + head + b"\r\n\r\n" + (b"" if cut else body)) as line:
        if cut:
            line.sendall(body)
        assert read_until(line, b"{}").startswith(b"HTTP/1.1 200 ")
        line.sendall(POST + b"content-length: 3\r\n\r\n[1]")
        read_until(line, b"[1]")
    assert not {"upgrade", "http2-settings", "x-hop", "connection"} & set(upstream.seen[0].headers)


@pytest.mark.parametrize("base", ["/v1", "/set/s/v1", "/session/s/v1", "/up/v1", "/set/s/session/t/up/v1"])
def test_a_websocket_is_a_501_on_every_base(start_proxy: StartProxy, start_upstream: StartUpstream, base: str) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    sent = (
        f"GET {base}/realtime?model=m HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: WebSocket\r\n"
    )
    sent += "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    with raw(start_proxy(upstream.base_url).port, sent.encode()) as line:
        got = read_until(line, b"websocket_not_supported")
    assert got.startswith(b"HTTP/1.1 501 ")
    assert b"content-type: application/json" in got
    assert not upstream.seen


def test_requests_in_a_row_are_answered_in_a_row(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda seen: [answer({"target": seen.target})])
    with raw(start_proxy(upstream.base_url).port, GET.replace(b"models", b"a") + GET.replace(b"models", b"b")) as line:
        got = read_until(line, b"/v1/b")
    assert got.index(b"/v1/a") < got.index(b"/v1/b")


def test_nonsense_behind_a_request_does_not_touch_its_answer(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    go_on = threading.Event()
    upstream = start_upstream(lambda _: [chunked_head(), chunk(event("1")), go_on, chunk(event("2")), chunk(b"")])
    with raw(start_proxy(upstream.base_url).port, GET) as line:
        got = read_until(line, b"data: 1")
        line.sendall(b"\0nonsense\r\n\r\n")
        line.sendall(b"more of it")
        go_on.set()
        got += rest(line)
    assert got.endswith(chunk(event("2")) + chunk(b""))
    assert b"400" not in got


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize("announced", [True, False])
def test_a_body_above_the_limit_is_a_413_for_a_client_that_goes_on_sending(
    start_proxy: StartProxy, start_upstream: StartUpstream, path: str, announced: bool
) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url, server={"max_body_bytes": 100_000})
    piece = bytes(1 << 20)
    framing = b"content-length: 20971520" if announced else b"transfer-encoding: chunked"
    with raw(proxy.port, f"POST {path} HTTP/1.1\r\nhost: x\r\n".encode() + framing + b"\r\n\r\n") as line:
        for _ in range(20):
            line.sendall(piece if announced else chunk(piece))
        line.sendall(b"" if announced else chunk(b""))
        head, _, body = read_until(line, b"}").partition(b"\r\n\r\n")
        line.sendall(GET)
        read_until(line, b"{}")
    error = json.loads(body + b"}" * (body.count(b"{") - body.count(b"}")))
    assert head.startswith(b"HTTP/1.1 413 ")
    assert error.get("type") == ("error" if "messages" in path else None)
    assert [one.target for one in upstream.seen] == ["/v1/models"]


def test_a_body_that_is_announced_too_long_is_not_asked_for(start_proxy: StartProxy) -> None:
    sent = POST + b"expect: 100-continue\r\ncontent-length: 9999999999\r\n\r\n"
    with raw(start_proxy().port, sent) as line:
        assert read_until(line, b"}").startswith(b"HTTP/1.1 413 ")


def test_an_endpoint_that_is_not_read_has_no_limit(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda seen: [answer({"size": len(seen.body)})])
    proxy = start_proxy(upstream.base_url, server={"max_body_bytes": 2000})
    assert proxy.request("POST", "/v1/files", bytes(5 << 20)).json == {"size": 5 << 20}


class _Hasty(Connection):
    head_seconds = 0.1
    ended: threading.Event

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.ended.set()


async def _application(scope: Any, _: Any, send: Any) -> None:
    """Answer at once with as many bytes as the path says, without reading the body."""
    size = int(scope["path"][1:])
    headers = [(b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": bytes(size)})


@pytest.fixture
def hasty() -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    _Hasty.ended = threading.Event()
    config = uvicorn.Config(
        _application, http=_Hasty, interface="asgi3", lifespan="off", log_config=None, ws="none", loop="uvloop"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(PATIENCE)
    listening.close()


@pytest.mark.parametrize("sent", [b"GET / HT", POST, POST + b"x: " + b"a" * 1000])
def test_a_head_that_does_not_come_to_its_end_is_a_408(hasty: int, sent: bytes) -> None:
    assert talk(hasty, sent).startswith(b"HTTP/1.1 408 ")


def test_a_second_head_must_come_too(hasty: int) -> None:
    assert b"HTTP/1.1 408 " in talk(hasty, GET.replace(b"v1/models", b"2") + b"GET /")


def test_a_connection_that_says_nothing_is_closed(hasty: int) -> None:
    assert talk(hasty, b"") == b""


def test_the_rest_of_a_body_that_nobody_reads_is_not_waited_for_for_ever(hasty: int) -> None:
    with raw(hasty, b"POST /2 HTTP/1.1\r\ncontent-length: 99\r\n\r\n") as line:
        read_until(line, b"\0\0")
        line.sendall(b"half")
        assert rest(line) == b""


def test_the_rest_of_an_answer_that_nobody_takes_is_not_kept_for_ever(hasty: int) -> None:
    with raw(hasty, b"GET /90000000 HTTP/1.0\r\n\r\n") as line:
        assert _Hasty.ended.wait(PATIENCE)
        assert len(rest(line)) < 90_000_000
