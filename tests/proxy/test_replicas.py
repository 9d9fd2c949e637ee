"""Two proxies on one PostgreSQL are one to their clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Answered, RunningProxy, StartProxy, StartUpstream
from tests.postgresql import Server
from tests.upstreams import RawUpstream, chat

SECOND = 1.0


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(chat)


@pytest.fixture
def pair(
    postgresql: Server, start_proxy: StartProxy, upstream: RawUpstream
) -> Iterator[tuple[RunningProxy, RunningProxy]]:
    with postgresql.database() as url:
        both = [
            start_proxy(upstream.base_url, store={"url": url}, routes=[{"set": "s", "models": ["*"]}]) for _ in range(2)
        ]
        yield both[0], both[1]
        for one in both:
            one.stop()


def test_a_swap_on_one_reaches_new_trajectories_of_the_other_within_a_second(
    pair: tuple[RunningProxy, RunningProxy],
) -> None:
    one, other = pair
    one.deploy("s", "Check units.")
    swapped = time.monotonic()
    until_seen(other, "s@1")
    assert time.monotonic() - swapped < SECOND


def test_a_conversation_goes_on_at_the_other_proxy(pair: tuple[RunningProxy, RunningProxy]) -> None:
    one, other = pair
    one.deploy("s", "Check units.")
    until_seen(other, "s@1")
    first = one.chat("How far?")
    assert first.headers["x-tfgrpo-set"] == "s@1"
    one.deploy("s", "Check signs.")
    said = first.json["choices"][0]["message"]
    turns = [{"role": "user", "content": "How far?"}, said, {"role": "user", "content": "And back?"}]
    second = other.chat(messages=turns)
    assert second.headers["x-tfgrpo-trajectory"] == first.headers["x-tfgrpo-trajectory"]
    assert second.headers["x-tfgrpo-set"] == "s@1"


def test_a_rollback_on_one_acts_on_a_running_trajectory_at_the_other(pair: tuple[RunningProxy, RunningProxy]) -> None:
    one, other = pair
    one.deploy("s", "Check units.")
    one.deploy("s", "Check signs.")
    named = {"x-tfgrpo-trajectory": "mine"}
    until_seen(other, "s@2")
    assert other.chat(headers=named).headers["x-tfgrpo-set"] == "s@2"
    one.request("POST", "/admin/api/sets/s/rollback", {"reason": "test"})
    until_seen(other, "s@1")
    assert other.chat(headers=named).headers["x-tfgrpo-set"] == "s@1"


def test_a_label_sent_to_one_judges_what_the_other_answered(pair: tuple[RunningProxy, RunningProxy]) -> None:
    one, other = pair
    exchange = one.chat().headers["x-tfgrpo-exchange"]
    label: dict[str, Any] = {"exchange_id": exchange, "value": True}
    sent = {"content-type": "application/json", "authorization": "Bearer sk-client"}
    assert other.request("POST", "/v1/feedback", label, sent).json["status"] == "stored"


def until_seen(proxy: RunningProxy, version: str) -> Answered:
    """Ask until a new trajectory is given this version; at most a few seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        answer = proxy.chat()
        if answer.headers["x-tfgrpo-set"] == version:
            return answer
    raise AssertionError(f"{version} was not seen")
