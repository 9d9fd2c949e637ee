"""A proxy whose store goes away: live traffic goes on, and what was acknowledged is there when it comes back."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Answered, RunningProxy, StartProxy, StartUpstream
from tests.postgresql import Stoppable, stoppable
from tests.proxy.test_recording import until
from tests.upstreams import RawUpstream, chat
from tfgrpo.errors import StoreAway, StoreError
from tfgrpo.store import Store
from tfgrpo.types import Experience, Library

KEY = {"content-type": "application/json", "authorization": "Bearer sk-client"}


@pytest.fixture(scope="module")
def machine() -> Iterator[Stoppable]:
    with stoppable() as started:
        yield started


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(chat)


@pytest.fixture
def url(machine: Stoppable) -> Iterator[str]:
    with machine.database() as made:
        yield made


def start(start_proxy: StartProxy, upstream: RawUpstream, url: str, folder: Path, **more: Any) -> RunningProxy:
    return start_proxy(
        upstream.base_url,
        store={"url": url},
        outage={"folder": str(folder / "outage")},
        routes=[{"set": "s", "models": ["*"]}],
        **more,
    )


def label(proxy: RunningProxy, exchange: str, **more: Any) -> Answered:
    return proxy.request("POST", "/v1/feedback", {"exchange_id": exchange, "value": True, **more}, KEY)


def state(proxy: RunningProxy) -> str:
    return str(proxy.request("GET", "/health/readiness").json["status"])


def test_while_postgresql_is_away_traffic_goes_on_and_everything_is_there_after(
    machine: Stoppable, url: str, start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    proxy = start(start_proxy, upstream, url, tmp_path)
    proxy.deploy("s", "Check units.")
    before = proxy.chat("before").headers["x-tfgrpo-exchange"]
    assert label(proxy, before, feedback_id="fb-before").status == 200
    machine.stop()
    try:
        during = [proxy.chat(f"task {number}") for number in range(20)]
        assert {(answer.status, answer.headers["x-tfgrpo-set"]) for answer in during} == {(200, "s@1")}
        refused = label(proxy, during[0].headers["x-tfgrpo-exchange"])
        assert (refused.status, refused.json["error"]["code"]) == (503, "store_unavailable")
        assert int(refused.headers["retry-after"]) > 0
        listed = proxy.request("GET", "/admin/api/sets")
        assert listed.status == 503
        # Where the server of the store stands is no client's business.
        assert not [answer for answer in (refused, listed) if b"PGSQL" in answer.body]
        assert until(lambda: state(proxy) == "degraded")
    finally:
        machine.start()
    assert until(lambda: state(proxy) == "ready")
    assert label(proxy, during[0].headers["x-tfgrpo-exchange"]).status == 200
    assert label(proxy, before, feedback_id="fb-before").json["status"] == "duplicate"
    asked = {before, *(answer.headers["x-tfgrpo-exchange"] for answer in during)}
    assert asked <= {one.id for one in proxy.recorded()}
    with closing(Store.open(url)) as store:
        deployed = store.sets.deployments()
    assert [(one.set, one.live) for one in deployed] == [("s", 1)]


def test_a_proxy_that_starts_while_postgresql_is_away_serves_what_was_deployed(
    machine: Stoppable, url: str, start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    first = start(start_proxy, upstream, url, tmp_path)
    first.deploy("s", "Check units.")
    earlier = first.chat("first").headers["x-tfgrpo-exchange"]
    first.stop()
    machine.stop()
    try:
        second = start(start_proxy, upstream, url, tmp_path)
        assert state(second) == "degraded"
        answer = second.chat("How far?")
        assert answer.headers["x-tfgrpo-set"] == "s@1"
        assert label(second, answer.headers["x-tfgrpo-exchange"]).status == 503
    finally:
        machine.start()
    assert until(lambda: state(second) == "ready")
    for exchange in (earlier, answer.headers["x-tfgrpo-exchange"]):
        assert label(second, exchange).status == 200
    second.deploy("s", "Check signs.")
    assert second.chat("And now?").headers["x-tfgrpo-set"] == "s@2"
    assert answer.headers["x-tfgrpo-exchange"] in {one.id for one in second.recorded()}


def test_a_proxy_that_starts_while_postgresql_is_away_gives_nothing_that_was_withdrawn(
    machine: Stoppable, url: str, start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    first = start(start_proxy, upstream, url, tmp_path)
    entries = (Experience("e1", "Check units.", ("g",)), Experience("e2", "Skip units.", ("bad",)))
    with closing(Store.open(url)) as store:
        store.sets.add_version("s", Library(entries, 3), status="by hand")
    assert first.request("PUT", "/admin/api/sets/s/deployment", {"live": 1}).status == 200
    first.chat("before")
    assert "Skip units." in upstream.seen[-1].body.decode()
    assert first.request("POST", "/admin/api/withdrawals", {"kind": "source", "name": "bad"}).status == 200
    first.stop()
    machine.stop()
    try:
        second = start(start_proxy, upstream, url, tmp_path)
        assert second.chat("during").headers["x-tfgrpo-set"] == "s@1"
        said = upstream.seen[-1].body.decode()
        assert ("Check units." in said, "Skip units." in said) == (True, False)
    finally:
        machine.start()
    # The first request that may ask the store pins the version: it is asked with what the copy says was withdrawn.
    assert until(lambda: second.chat("after", {"x-tfgrpo-set": "s@1"}).status == 200)
    assert "Skip units." not in upstream.seen[-1].body.decode()


def test_a_database_that_was_never_there_is_made_when_the_server_comes(
    machine: Stoppable, url: str, start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    machine.stop()
    try:
        pair = [start(start_proxy, upstream, url, tmp_path) for _ in range(2)]
        asked = [one.chat("hi").headers["x-tfgrpo-exchange"] for one in pair]
    finally:
        machine.start()
    for one, exchange in zip(pair, asked, strict=True):
        assert until(lambda one=one: state(one) == "ready")  # type: ignore[misc]
        assert label(one, exchange).status == 200
        one.stop()
    assert set(asked) <= {one.id for one in pair[0].recorded()}


def test_a_database_that_a_running_server_does_not_know_refuses_the_start(url: str) -> None:
    with pytest.raises(StoreError, match="does not exist") as raised:
        Store.open(url.replace("tfgrpo_", "other_"), migrate=True, later=True)
    assert not isinstance(raised.value, StoreAway)


def test_what_is_kept_for_an_outage_holds_no_credential(
    machine: Stoppable, url: str, start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    proxy = start(start_proxy, upstream, url, tmp_path)
    proxy.deploy("s", "Check units.")
    machine.stop()
    try:
        proxy.chat("hi")
        assert until(lambda: state(proxy) == "degraded")
        proxy.stop()
        files = list((tmp_path / "outage").iterdir())
        assert len(files) == 3
        assert all(file.stat().st_mode & 0o077 == 0 for file in files)
        assert not [file for file in files if b"sk-client" in file.read_bytes()]
    finally:
        machine.start()


def test_a_locked_store_holds_up_no_request_and_takes_all_when_it_is_free(
    start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    proxy = start(start_proxy, upstream, f"sqlite:///{tmp_path / 'store.db'}", tmp_path)
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asked = {proxy.chat(f"task {number}").headers["x-tfgrpo-exchange"] for number in range(10)}
        other.execute("ROLLBACK")
    assert asked <= {one.id for one in proxy.recorded()}


def test_a_damaged_log_of_writes_loses_no_more_than_its_end(
    start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    """SQLite drops what its checksums do not vouch for: the store opens, and serves."""
    file = tmp_path / "store.db"
    proxy = start(start_proxy, upstream, f"sqlite:///{file}", tmp_path)
    proxy.deploy("s", "Check units.")
    proxy.stop()
    (tmp_path / "store.db-wal").write_bytes(os.urandom(100_000))
    again = start(start_proxy, upstream, f"sqlite:///{file}", tmp_path)
    answer = again.chat("hi")
    assert (answer.status, answer.headers["x-tfgrpo-set"]) == (200, "s@1")
    assert answer.headers["x-tfgrpo-exchange"] in {one.id for one in again.recorded()}
