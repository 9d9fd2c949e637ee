"""The switch that takes the proxy out of the way: on a running proxy, on both stores, on two replicas."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.postgresql import Server
from tests.upstreams import chat

SECOND = 1.0
ROUTES = [{"set": "s", "models": ["*"]}]


def start(start_proxy: StartProxy, start_upstream: StartUpstream, url: str, **sections: Any) -> RunningProxy:
    return start_proxy(start_upstream(chat).base_url, store={"url": url}, routes=ROUTES, **sections)


def switch(proxy: RunningProxy, *, on: bool) -> dict[str, Any]:
    answered = proxy.request("PUT", "/admin/api/bypass", {"bypass": on, "reason": "test"})
    assert answered.status == 200, answered.body
    found: dict[str, Any] = answered.json
    return found


def test_switched_on_nothing_is_injected_or_recorded_and_back_at_once(
    start_proxy: StartProxy, start_upstream: StartUpstream, url: str
) -> None:
    proxy = start(start_proxy, start_upstream, url)
    proxy.deploy("s", "Check units.")
    assert proxy.chat("one").headers["x-tfgrpo-set"] == "s@1"
    assert switch(proxy, on=True)["bypass"] is True
    assert proxy.chat("two").headers["x-tfgrpo-set"] == "none"
    assert proxy.request("GET", "/status").json["bypass"] is True
    assert switch(proxy, on=False)["bypass"] is False
    assert proxy.chat("three").headers["x-tfgrpo-set"] == "s@1"
    assert len(proxy.recorded()) == 2


def test_it_survives_a_restart_and_stands_in_the_history(
    start_proxy: StartProxy, start_upstream: StartUpstream, url: str
) -> None:
    first = start(start_proxy, start_upstream, url)
    switch(first, on=True)
    first.stop()
    second = start(start_proxy, start_upstream, url)
    second.chat()
    found = second.request("GET", "/admin/api/bypass").json
    assert (found["bypass"], found["configured"]) == (True, False)
    assert [(one["bypass"], one["reason"], one["actor"]) for one in found["history"]] == [(True, "test", "admin api")]
    assert second.recorded() == []


def test_another_replica_follows_within_a_second(
    start_proxy: StartProxy, start_upstream: StartUpstream, postgresql: Server
) -> None:
    with postgresql.database() as url:
        one, other = (start(start_proxy, start_upstream, url) for _ in range(2))
        one.deploy("s", "Check units.")
        switched = time.monotonic()
        switch(one, on=True)
        until(other, bypass=True)
        assert time.monotonic() - switched < SECOND
        assert other.chat().headers["x-tfgrpo-set"] == "none"
        one.stop()
        other.stop()


def test_what_the_configuration_says_counts_for_more(
    start_proxy: StartProxy, start_upstream: StartUpstream, url: str
) -> None:
    proxy = start(start_proxy, start_upstream, url, server={"bypass": True})
    answered = proxy.request("PUT", "/admin/api/bypass", {"bypass": False})
    assert (answered.status, "server.bypass" in answered.json["error"]["message"]) == (409, True)
    assert proxy.request("GET", "/admin/api/bypass").json["configured"] is True


@pytest.mark.parametrize("body", [{}, {"bypass": 1}, {"bypass": "on"}, {"bypass": True, "why": "x"}])
def test_what_is_no_switch_is_refused(
    start_proxy: StartProxy, start_upstream: StartUpstream, tmp_path: Path, body: dict[str, Any]
) -> None:
    proxy = start(start_proxy, start_upstream, f"sqlite:///{tmp_path / 'store.db'}")
    assert proxy.request("PUT", "/admin/api/bypass", body).status == 400
    assert proxy.request("GET", "/admin/api/bypass").json["history"] == []


def until(proxy: RunningProxy, *, bypass: bool) -> None:
    end = time.monotonic() + 5
    while proxy.request("GET", "/status").json["bypass"] is not bypass:
        assert time.monotonic() < end
