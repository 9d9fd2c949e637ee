from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.conftest import StartProxy, StartUpstream
from tests.raw_client import BODY, ODD_BODY, posted, raw, read_until
from tests.upstreams import Seen, Step, answer, chunk, chunked_head, completion, event


def test_a_body_that_gets_no_injection_arrives_byte_for_byte(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [answer(completion())])
    proxy = start_proxy(upstream.base_url)
    proxy.request("POST", "/v1/chat/completions", ODD_BODY)
    assert upstream.wait_seen().body == ODD_BODY


def test_a_malformed_body_is_relayed_and_the_upstreams_answer_returned(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda seen: [answer({"error": {"message": "bad"}}, status=400 if seen.body else 500)])
    proxy = start_proxy(upstream.base_url, routes=[{"set": "math"}])
    answered = proxy.request("POST", "/v1/chat/completions", b'{"messages": [')
    assert (answered.status, answered.json, upstream.seen[0].body) == (
        400,
        {"error": {"message": "bad"}},
        b'{"messages": [',
    )


def test_headers_cross_in_order_with_their_values_and_nothing_is_added(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [answer(completion())])
    proxy = start_proxy(upstream.base_url)
    sent = [
        (b"authorization", b"Bearer sk-1"),
        (b"openai-beta", b"a=b"),
        (b"x-own", "übung".encode()),
        (b"x-twice", b"1"),
        (b"x-twice", b"2"),
    ]
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in sent)
    with raw(proxy.port, b"GET /v1/models HTTP/1.1\r\nhost: me\r\n" + lines + b"\r\n") as line:
        read_until(line, b"\r\n\r\n")
    received = upstream.wait_seen().raw_headers
    assert received == [(b"host", f"127.0.0.1:{upstream.port}".encode()), *sent]


@pytest.mark.parametrize(
    "header",
    [
        "cookie: a=b",
        "x-forwarded-for: 1.2.3.4",
        "forwarded: for=1.2.3.4",
        "x-real-ip: 1.2.3.4",
        "x-tfgrpo-group: g",
        "te: trailers",
        "expect: 100-continue",
        "keep-alive: 5",
    ],
)
def test_a_header_that_is_not_the_upstreams_business_stays_here(
    start_proxy: StartProxy, start_upstream: StartUpstream, header: str
) -> None:
    upstream = start_upstream(lambda _: [answer(completion())])
    proxy = start_proxy(upstream.base_url)
    name, value = header.split(": ")
    proxy.request("POST", "/v1/chat/completions", BODY, {name: value})
    assert name not in upstream.wait_seen().headers


def test_what_connection_names_stays_here(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url)
    proxy.request("GET", "/v1/models", None, {"connection": "X-Hop", "x-hop": "1", "x-end": "2"})
    assert [name for name in upstream.wait_seen().headers if name.startswith("x-")] == ["x-end"]


def test_path_and_query_arrive_as_they_were_sent(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url)
    proxy.request("GET", "/v1/models/org%2Fname%20x?a=%2f&b=+&c")
    assert upstream.wait_seen().target == "/v1/models/org%2Fname%20x?a=%2f&b=+&c"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_query_of_nothing_stays_one(start_proxy: StartProxy, start_upstream: StartUpstream, method: str) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url)
    for target in ("/v1/models?", "/v1/models??", "/v1/models"):
        proxy.request(method, target)
    assert [seen.target for seen in upstream.seen] == ["/v1/models?", "/v1/models??", "/v1/models"]


def test_the_base_urls_path_takes_the_place_of_v1(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(f"http://127.0.0.1:{upstream.port}/api/v3/")
    proxy.request("GET", "/v1/models")
    assert upstream.wait_seen().target == "/api/v3/models"


def test_status_error_body_and_headers_of_the_upstream_pass_unchanged(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    body = b'{"error":{"message":"slow down","code":429}}'
    said = [("retry-after", "30"), ("retry-after-ms", "7"), ("x-ratelimit-limit", "9"), ("x-should-retry", "false")]
    upstream = start_upstream(lambda _: [answer(body, status=429, headers=said)])
    answered = start_proxy(upstream.base_url).chat()
    assert (answered.status, answered.body) == (429, body)
    assert set(said) <= {(name.lower(), value) for name, value in answered.raw_headers}


def test_an_answer_gets_no_header_but_ours(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer(completion())])
    answered = start_proxy(upstream.base_url).chat()
    theirs = [name for name in answered.headers if not name.startswith("x-tfgrpo-")]
    assert theirs == ["content-type", "content-length"]


def test_a_compressed_answer_passes_as_it_is(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    packed = gzip.compress(json.dumps(completion()).encode())
    upstream = start_upstream(lambda _: [answer(packed, headers=[("content-encoding", "gzip")])])
    proxy = start_proxy(upstream.base_url)
    answered = proxy.chat()
    assert (answered.body, answered.headers["content-encoding"]) == (packed, "gzip")
    assert proxy.recorded()[0].completion_id == "chatcmpl-1"


def test_a_redirect_is_the_clients_to_follow(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({}, status=307, headers=[("location", "/v1/other")])])
    answered = start_proxy(upstream.base_url).request("GET", "/v1/models")
    assert (answered.status, answered.headers["location"], len(upstream.seen)) == (307, "/v1/other", 1)


def test_a_head_request_keeps_the_content_length(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [b"HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n"])
    answered = start_proxy(upstream.base_url).request("HEAD", "/v1/models")
    assert (answered.status, answered.headers["content-length"], answered.body) == (200, "42", b"")


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_passes(start_proxy: StartProxy, start_upstream: StartUpstream, status: int) -> None:
    length = "Content-Length: 9\r\n" if status == 304 else ""
    upstream = start_upstream(lambda _: [f"HTTP/1.1 {status} X\r\n{length}ETag: e\r\n\r\n".encode()])
    answered = start_proxy(upstream.base_url).request("GET", "/v1/models")
    assert (answered.status, answered.headers["etag"], answered.body) == (status, "e", b"")


def test_a_stream_comes_down_as_it_comes_in(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    go_on = threading.Event()
    upstream = start_upstream(
        lambda _: [chunked_head(), chunk(b"data: 1\n\n"), go_on, chunk(b"data: 2\n\n") + chunk(b"")]
    )
    with posted(start_proxy(upstream.base_url).port) as line:
        assert b"data: 2" not in read_until(line, b"data: 1\n\n")
        go_on.set()
        read_until(line, b"0\r\n\r\n")


def test_a_stream_is_relayed_whole_whatever_its_cuts(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    whole = ': comment\r\n\r\ndata:{"a":"\U0001f600"}\r\n\r\ndata: [DONE]\r\r'.encode()
    cuts = [whole[i : i + 1] for i in range(len(whole))]
    upstream = start_upstream(lambda _: [chunked_head(), *(chunk(cut) for cut in cuts), chunk(b"")])
    assert start_proxy(upstream.base_url).chat(stream=True).body == whole


@pytest.mark.parametrize("end", ["close", "reset"])
def test_an_upstream_that_breaks_off_breaks_the_clients_stream(
    start_proxy: StartProxy, start_upstream: StartUpstream, end: Step
) -> None:
    relayed = threading.Event()
    upstream = start_upstream(lambda _: [chunked_head(), chunk(event({"choices": []})), relayed, end])
    proxy = start_proxy(upstream.base_url)
    with posted(proxy.port) as line:
        got = read_until(line, b"choices")
        relayed.set()
        while piece := line.recv(65536):
            got += piece
    assert not got.endswith(b"0\r\n\r\n")
    assert [one.outcome for one in proxy.recorded()] == ["broken"]


def test_a_body_shorter_than_announced_is_no_whole_answer(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", "close"])
    with pytest.raises(http.client.IncompleteRead):
        start_proxy(upstream.base_url).chat()


def test_a_stream_without_its_end_is_recorded_as_broken(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    half = event({"id": "c", "choices": [{"index": 0, "delta": {"content": "ha"}, "finish_reason": None}]})
    upstream = start_upstream(lambda _: [chunked_head(), chunk(half), chunk(b"")])
    proxy = start_proxy(upstream.base_url)
    assert proxy.chat(stream=True).body == half
    assert [one.outcome for one in proxy.recorded()] == ["broken"]


def test_an_upstream_that_is_down_is_a_502_with_our_exchange_id(start_proxy: StartProxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy = start_proxy(f"http://127.0.0.1:{port}/v1")
    answered = proxy.chat()
    error = answered.json["error"]
    assert (answered.status, error["type"], error["code"]) == (502, "proxy_error", "upstream_unreachable")
    assert error["exchange_id"] == answered.headers["x-tfgrpo-exchange"]
    assert [(one.outcome, one.status) for one in proxy.recorded()] == [("failed", 502)]


def test_an_upstream_that_stays_silent_is_a_504(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: ["hold"])
    answered = start_proxy(upstream.base_url, timeouts={"first_byte": 0.2}).chat()
    assert (answered.status, answered.json["error"]["code"]) == (504, "upstream_timeout")


def test_an_upstream_that_falls_silent_in_mid_stream_breaks_the_stream(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(event("1")), "hold"])
    with pytest.raises(http.client.IncompleteRead):
        start_proxy(upstream.base_url, timeouts={"idle": 0.2}).chat(stream=True)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_that_may_have_been_carried_out_is_never_sent_again(
    start_proxy: StartProxy, start_upstream: StartUpstream, method: str
) -> None:
    def once(_: Seen) -> Iterator[Step]:
        # The first request of a connection is answered, so that the second one comes over a line that is reused.
        yield answer({}) if len(upstream.seen) == 1 else "close"

    upstream = start_upstream(once)
    proxy = start_proxy(upstream.base_url)
    proxy.request("GET", "/v1/models")
    answered = proxy.request(method, "/v1/models", b"{}" if method == "POST" else None)
    assert (answered.status, len(upstream.seen)) == (502, 2)


def test_one_request_too_many_is_a_503(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: ["hold"])
    proxy = start_proxy(upstream.base_url, server={"max_in_flight": 1})
    with posted(proxy.port):
        upstream.wait_seen()
        answered = proxy.chat()
    assert (answered.status, answered.json["error"]["code"]) == (503, "overloaded")


def test_a_body_above_the_limit_is_a_413(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url, server={"max_body_bytes": 2000})
    assert (proxy.chat("x" * 3000).status, proxy.chat("x").status, len(upstream.seen)) == (413, 200, 1)


def test_headers_above_the_limit_are_a_431(start_proxy: StartProxy) -> None:
    answered = start_proxy().request("GET", "/v1/models", None, {"x-large": "x" * 70_000})
    assert (answered.status, answered.json["error"]["code"]) == (431, "headers_too_large")


def test_a_websocket_is_a_501(start_proxy: StartProxy) -> None:
    wanted = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": "x"}
    answered = start_proxy().request("GET", "/v1/realtime", None, wanted)
    assert (answered.status, answered.json["error"]["type"]) == (501, "proxy_error")


@pytest.mark.parametrize(
    "path", ["/v1/..%2f..%2fadmin", "/v1/%252e%252e/x", "/v1/a/../b", "/v1//models", "/v1/a\\..\\b", "/v1/%2e/x"]
)
def test_a_path_that_climbs_is_a_400(start_proxy: StartProxy, start_upstream: StartUpstream, path: str) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    answered = start_proxy(upstream.base_url).request("GET", path)
    assert (answered.status, upstream.seen) == (400, [])


def test_fields_that_name_an_address_choose_nothing(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer(completion())])
    proxy = start_proxy(upstream.base_url)
    sent = proxy.chat(api_base="http://127.0.0.1:9/v1", base_url="http://127.0.0.1:9", api_key="k", custom_host="h")
    assert (sent.status, upstream.wait_seen().json["api_base"]) == (200, "http://127.0.0.1:9/v1")
