from __future__ import annotations

import http.client
import threading
from typing import Any

import pytest

from tests.conftest import Answered, RunningProxy, StartProxy, StartUpstream
from tests.stubborn import Deaf, blackhole
from tests.upstreams import Step, answer, chunk, chunked_head, completion, event

LARGE = b"x" * (20 << 20)
PATHS = ["/v1/chat/completions", "/v1/files"]


def post(proxy: RunningProxy, path: str, body: bytes = b"{}") -> Answered:
    return proxy.request("POST", path, body, {"content-type": "application/octet-stream"})


def refusal(answered: Answered) -> tuple[int, str]:
    return answered.status, answered.json["error"]["code"]


@pytest.mark.parametrize("path", [*PATHS, "/v1/models"])
def test_a_connection_that_does_not_come_about_is_a_504(start_proxy: StartProxy, path: str) -> None:
    with blackhole() as address:
        proxy = start_proxy(address, timeouts={"connect": 0.2})
        answered = proxy.request("GET", path) if path == "/v1/models" else post(proxy, path)
    assert refusal(answered) == (504, "upstream_timeout")


@pytest.mark.parametrize("path", PATHS)
def test_an_upstream_that_takes_no_more_of_a_request_is_a_504(start_proxy: StartProxy, path: str) -> None:
    with Deaf() as upstream:
        answered = post(start_proxy(upstream.base_url, timeouts={"first_byte": 0.3}), path, LARGE)
    assert refusal(answered) == (504, "upstream_timeout")


def test_an_upstream_that_takes_a_request_slowly_is_waited_for(start_proxy: StartProxy) -> None:
    with Deaf() as upstream:
        proxy = start_proxy(upstream.base_url, timeouts={"first_byte": 0.3})
        got: list[Answered] = []
        sending = threading.Thread(target=lambda: got.append(post(proxy, "/v1/files", LARGE)))
        sending.start()
        upstream.wait_connected()
        head = upstream.take(400).split(b"\r\n\r\n")
        left = len(LARGE) - len(head[1])
        pause = threading.Event()
        while left > 0:
            # In all it takes longer than each of the time-outs.
            pause.wait(0.05)
            left -= len(upstream.take(min(left, 2 << 20)))
        upstream.line.sendall(answer({}))
        sending.join()
    assert got[0].status == 200


@pytest.mark.parametrize("path", PATHS)
def test_an_upstream_that_took_the_request_and_says_nothing_is_a_504(
    start_proxy: StartProxy, start_upstream: StartUpstream, path: str
) -> None:
    upstream = start_upstream(lambda _: ["hold"])
    answered = post(start_proxy(upstream.base_url, timeouts={"first_byte": 0.2}), path)
    assert refusal(answered) == (504, "upstream_timeout")


@pytest.mark.parametrize("path", PATHS)
def test_an_upstream_that_falls_silent_breaks_the_answer(
    start_proxy: StartProxy, start_upstream: StartUpstream, path: str
) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(event("1")), "hold"])
    proxy = start_proxy(upstream.base_url, timeouts={"idle": 0.2})
    with pytest.raises(http.client.IncompleteRead):
        post(proxy, path)
    assert [one.outcome for one in proxy.recorded()] == ["broken"]


@pytest.mark.parametrize("path", PATHS)
def test_an_upstream_that_sends_its_head_alone_breaks_the_answer(
    start_proxy: StartProxy, start_upstream: StartUpstream, path: str
) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), "hold"])
    proxy = start_proxy(upstream.base_url, timeouts={"idle": 0.2})
    with pytest.raises(http.client.IncompleteRead):
        post(proxy, path)
    assert [(one.outcome, one.status) for one in proxy.recorded()] == [("broken", 200)]


@pytest.mark.parametrize("path", PATHS)
def test_a_slow_first_byte_is_waited_for_longer_than_those_that_follow(
    start_proxy: StartProxy, start_upstream: StartUpstream, path: str
) -> None:
    pause = threading.Event()

    def slow(_: Any) -> Any:
        pause.wait(0.5)
        yield answer(completion())

    upstream = start_upstream(slow)
    proxy = start_proxy(upstream.base_url, timeouts={"idle": 0.1, "first_byte": 5})
    assert post(proxy, path).status == 200


def never_ending(piece: bytes) -> Any:
    """Send a piece every 50 ms, as long as somebody is there."""
    pause = threading.Event()

    def go_on(_: Any) -> Any:
        yield chunked_head()
        while not pause.wait(0.05):
            yield chunk(piece)

    return go_on


@pytest.mark.parametrize("path", PATHS)
def test_the_total_is_a_504_before_the_head(start_proxy: StartProxy, start_upstream: StartUpstream, path: str) -> None:
    upstream = start_upstream(lambda _: ["hold"])
    proxy = start_proxy(upstream.base_url, timeouts={"total": 0.3})
    answered = post(proxy, path)
    assert refusal(answered) == (504, "upstream_timeout")
    assert "timeouts.total" in answered.json["error"]["message"]
    assert [(one.outcome, one.status) for one in proxy.recorded()] == [("failed", 504)]


@pytest.mark.parametrize("path", PATHS)
def test_the_total_breaks_an_answer_that_has_begun(
    start_proxy: StartProxy, start_upstream: StartUpstream, path: str
) -> None:
    upstream = start_upstream(never_ending(event("more")))
    proxy = start_proxy(upstream.base_url, timeouts={"total": 0.5})
    with pytest.raises(http.client.IncompleteRead):
        post(proxy, path)
    assert [one.outcome for one in proxy.recorded()] == ["broken"]


def test_a_time_out_has_the_envelope_of_the_api(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: ["hold"])
    answered = post(start_proxy(upstream.base_url, timeouts={"total": 0.3}), "/v1/messages")
    assert (answered.status, answered.json["type"]) == (504, "error")


def test_an_exchange_within_its_total_is_left_alone(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    steps: list[Step] = [answer(completion())]
    upstream = start_upstream(lambda _: steps)
    proxy = start_proxy(upstream.base_url, timeouts={"total": 5})
    assert [proxy.chat().status for _ in range(2)] == [200, 200]
