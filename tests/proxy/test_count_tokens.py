"""`/v1/messages/count_tokens`: what it counts is what the message would send, and it is no turn of a conversation."""

from __future__ import annotations

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.proxy.apis import MESSAGES, speaks
from tests.upstreams import RawUpstream
from tfgrpo import library

PATH = "/v1/messages/count_tokens"
BLOCK = library.render(library.from_texts(["Check the units."]), name="math", version=1)
HEADERS = {"x-api-key": "sk-ant", "x-tfgrpo-set": "math"}


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(speaks)


@pytest.fixture
def proxy(start_proxy: StartProxy, upstream: RawUpstream) -> RunningProxy:
    running = start_proxy(upstream.base_url)
    running.deploy("math", "Check the units.")
    return running


def test_what_is_counted_before_a_conversation_is_what_is_live(proxy: RunningProxy, upstream: RawUpstream) -> None:
    answered = proxy.request("POST", PATH, MESSAGES.first, HEADERS)
    assert upstream.wait_seen().json["system"] == BLOCK
    assert answered.headers["x-tfgrpo-set"] == "math@1"
    assert "x-tfgrpo-trajectory" not in answered.headers


def test_what_is_counted_within_a_conversation_is_what_it_is_given(proxy: RunningProxy, upstream: RawUpstream) -> None:
    proxy.deploy("math", "Another lesson.", shares={"control": 1.0})
    answered = proxy.request("POST", MESSAGES.path, MESSAGES.first, HEADERS)
    asked = MESSAGES.then(MESSAGES.first, answered.json)
    counted = proxy.request("POST", PATH, asked, HEADERS)
    assert "system" not in upstream.wait_seen(2).json
    assert counted.headers["x-tfgrpo-arm"] == "control"


def test_a_session_that_is_yet_to_begin_counts_with_its_arm(proxy: RunningProxy) -> None:
    proxy.deploy("math", "Another lesson.", shares={"control": 0.5})
    for number in range(8):
        path = f"/session/s{number}"
        counted = proxy.request("POST", f"{path}{PATH}", MESSAGES.first, HEADERS)
        asked = proxy.request("POST", f"{path}{MESSAGES.path}", MESSAGES.first, HEADERS)
        assert counted.headers["x-tfgrpo-arm"] == asked.headers["x-tfgrpo-arm"]


def test_counting_is_recorded_and_is_no_turn(proxy: RunningProxy) -> None:
    proxy.request("POST", PATH, MESSAGES.first, HEADERS)
    answered = proxy.request("POST", MESSAGES.path, MESSAGES.first, HEADERS)
    asked = MESSAGES.then(MESSAGES.first, answered.json)
    proxy.request("POST", PATH, asked, HEADERS)
    proxy.request("POST", MESSAGES.path, asked, HEADERS)
    counted, first, again, second = proxy.recorded()
    assert [(one.dialect, one.trajectory, one.version) for one in (counted, again)] == [(None, "", 1)] * 2
    assert (second.trajectory, second.parent) == (first.trajectory, first.id)


def test_a_refusal_has_anthropics_envelope(proxy: RunningProxy) -> None:
    refused = proxy.request("POST", PATH, MESSAGES.first, {**HEADERS, "x-tfgrpo-set": "math@99"})
    assert (refused.status, refused.json["type"], refused.json["error"]["type"]) == (404, "error", "proxy_error")
