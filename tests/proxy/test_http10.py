"""A client that speaks HTTP/1.0 gets every answer in a form that it can read, and no half answer that looks whole."""

from __future__ import annotations

import pytest

from tests.conftest import StartProxy, StartUpstream
from tests.raw_client import BODY, RawAnswer, asked, raw, read_until
from tests.upstreams import Step, answer, chunk, chunked_head, event

POST = b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: %d\r\n%s\r\n%s"
EVENTS = [event("1"), event("2"), event("[DONE]")]


def post(port: int, more: bytes = b"") -> RawAnswer:
    return asked(port, POST % (len(BODY), more, BODY))


@pytest.mark.parametrize("more", [b"", b"connection: keep-alive\r\n"])
def test_a_stream_comes_without_chunks_and_ends_with_its_connection(
    start_proxy: StartProxy, start_upstream: StartUpstream, more: bytes
) -> None:
    script: list[Step] = [chunked_head(), *(chunk(one) for one in EVENTS), chunk(b"")]
    answered = post(start_proxy(start_upstream(lambda _: script).base_url).port, more)
    fields = dict(answered.headers)
    assert (answered.status, answered.body) == (200, b"".join(EVENTS))
    assert b"transfer-encoding" not in fields
    assert fields[b"connection"] == b"close"


def test_an_answer_of_known_length_keeps_it(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    answered = post(start_proxy(start_upstream(lambda _: [answer({"id": "c"})]).base_url).port)
    assert (dict(answered.headers)[b"content-length"], answered.body) == (b"11", b'{"id": "c"}')


@pytest.mark.parametrize(
    ("method", "head"),
    [
        (b"GET", b"HTTP/1.1 204 No\r\n\r\n"),
        (b"HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (b"GET", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
    ],
)
def test_an_answer_without_a_body_ends(
    start_proxy: StartProxy, start_upstream: StartUpstream, method: bytes, head: bytes
) -> None:
    proxy = start_proxy(start_upstream(lambda _: [head, "close"]).base_url)
    assert asked(proxy.port, method + b" /v1/models HTTP/1.0\r\n\r\n").body == b""


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_half_answer_ends_with_a_reset(start_proxy: StartProxy, start_upstream: StartUpstream, end: Step) -> None:
    proxy = start_proxy(start_upstream(lambda _: [chunked_head(), chunk(EVENTS[0]), end]).base_url)
    with raw(proxy.port, POST % (len(BODY), b"", BODY)) as line, pytest.raises(ConnectionResetError):
        read_until(line, b"never")
    assert [one.outcome for one in proxy.recorded()] == ["broken"]


def test_an_answer_of_ours_can_be_read(start_proxy: StartProxy) -> None:
    answered = asked(start_proxy("http://127.0.0.1:1/v1").port, b"GET /nowhere HTTP/1.0\r\n\r\n")
    assert (answered.status, answered.body[:1]) == (404, b"{")
