from __future__ import annotations

import time

from tests.conftest import StartProxy, StartUpstream
from tests.raw_client import HEAD, posted, raw, read_until
from tests.upstreams import answer, chunk, chunked_head, event, streamed


def test_a_client_that_leaves_before_the_answer_cancels_the_upstream_within_a_second(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: ["hold"])
    proxy = start_proxy(upstream.base_url)
    line = posted(proxy.port)
    upstream.wait_seen()
    left = time.monotonic()
    line.close()
    assert upstream.wait_closed() - left < 1
    assert [(one.outcome, one.status) for one in proxy.recorded()] == [("aborted", None)]


def test_a_client_that_leaves_in_mid_stream_cancels_the_upstream_within_a_second(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(event("1")), "hold"])
    proxy = start_proxy(upstream.base_url)
    line = posted(proxy.port)
    read_until(line, b"data: 1")
    left = time.monotonic()
    line.close()
    assert upstream.wait_closed() - left < 1
    assert [one.outcome for one in proxy.recorded()] == ["aborted"]


def test_a_client_that_leaves_after_the_end_was_sent_left_nothing_unanswered(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    steps = streamed("hi there")[:-1]
    upstream = start_upstream(lambda _: [*steps, "hold"])
    proxy = start_proxy(upstream.base_url)
    line = posted(proxy.port)
    read_until(line, b"[DONE]")
    line.close()
    upstream.wait_closed()
    assert [one.outcome for one in proxy.recorded()] == ["complete"]


def test_a_client_that_leaves_while_sending_is_recorded(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url)
    raw(proxy.port, f"{HEAD}expect: 100-continue\r\ncontent-length: 99\r\n\r\n".encode()).close()
    proxy.request("GET", "/v1/models")
    assert "aborted" in [one.outcome for one in proxy.recorded()]
    assert len(upstream.seen) == 1


def test_an_upload_is_streamed_with_its_content_length(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url)
    body = b"--x\r\n\r\n--boundary inside\x00\xff" * 100_000
    proxy.request("POST", "/v1/files", body, {"content-type": "multipart/form-data; boundary=x"})
    seen = upstream.wait_seen()
    assert (seen.headers["content-length"], seen.body == body) == (str(len(body)), True)


def test_a_chunked_upload_is_streamed_in_chunks(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({})])
    proxy = start_proxy(upstream.base_url)
    sent = b"POST /v1/files HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"one") + chunk(b"two")
    with raw(proxy.port, sent + chunk(b"")) as line:
        read_until(line, b"{}")
    assert (upstream.seen[0].body, "content-length" in upstream.seen[0].headers) == (b"onetwo", False)


def test_a_client_that_leaves_in_mid_upload_cancels_the_upstream(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: ["hold"], reads_body=False)
    proxy = start_proxy(upstream.base_url)
    line = raw(proxy.port, b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\nhalf")
    upstream.wait_seen()
    left = time.monotonic()
    line.close()
    assert upstream.wait_closed() - left < 1
    assert [one.outcome for one in proxy.recorded()] == ["aborted"]


def test_an_upstream_may_answer_before_an_upload_has_ended(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [answer({"error": "too large"}, status=413)], reads_body=False)
    proxy = start_proxy(upstream.base_url)
    with raw(proxy.port, b"POST /v1/files HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\nhalf") as line:
        assert read_until(line, b"too large").startswith(b"HTTP/1.1 413")
