from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.postgresql import Server
from tests.upstreams import RawUpstream, chat
from tfgrpo.store import Store
from tfgrpo.types import Experience, Library

PATH = "/admin/api/withdrawals"


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(chat)


@pytest.fixture
def proxy(start_proxy: StartProxy, upstream: RawUpstream) -> RunningProxy:
    made = start_proxy(upstream.base_url)
    entries = (Experience("e1", "Check the sign.", ("g",)), Experience("e2", "Prefer the dear option.", ("bad@0",)))
    store = Store.open(made.settings.store.url)
    store.sets.add_version("math", Library(entries, 3), status="by hand")
    store.close()
    assert made.request("PUT", "/admin/api/sets/math/deployment", {"live": 1}).status == 200
    return made


def body(**more: Any) -> dict[str, Any]:
    return {"kind": "source", "name": "bad", **more}


def test_the_next_request_of_a_conversation_is_without_what_was_withdrawn(
    proxy: RunningProxy, upstream: RawUpstream
) -> None:
    def given() -> str:
        assert proxy.chat(headers={"x-tfgrpo-trajectory": "t"}, prefix="/set/math").status == 200
        return upstream.seen[-1].body.decode()

    assert "Prefer the dear option." in given()
    answer = proxy.request("POST", PATH, body(deploy=True, reason="poison", by="ann"))
    assert (answer.status, answer.json["sets"][0]["revision"]) == (200, 2)
    assert "Prefer the dear option." not in given()
    assert "Check the sign." in given()
    said = proxy.request("GET", "/admin/api/sets/math/history").json["history"][0]
    assert (said["action"], said["actor"], said["reason"]) == (
        "withdraw",
        "ann (admin api)",
        "source bad withdrawn: poison",
    )
    assert [one["name"] for one in proxy.request("GET", PATH).json["withdrawals"]] == ["bad"]


def test_a_client_that_pins_the_old_version_gets_it_without_what_was_withdrawn(
    proxy: RunningProxy, upstream: RawUpstream
) -> None:
    def given() -> str:
        assert proxy.chat(headers={"x-tfgrpo-set": "math@1"}).status == 200
        return upstream.seen[-1].body.decode()

    proxy.request("PUT", "/admin/api/sets/math/deployment", {"live": None})
    assert "Prefer the dear option." in given()
    assert proxy.request("POST", PATH, body(reason="poison")).status == 200
    said = given()
    assert ("Prefer the dear option." in said, "Check the sign." in said) == (False, True)
    assert proxy.request("GET", "/status").json["entries_left_out"] == 1


@pytest.mark.parametrize("arm", [{"live": 1}, {"live": None, "candidate": 1, "shares": {"candidate": 1.0}}])
def test_live_requests_are_without_it_though_nothing_else_is_deployed(
    proxy: RunningProxy, upstream: RawUpstream, arm: dict[str, Any]
) -> None:
    def given(named: str) -> str:
        answer = proxy.chat(headers={"x-tfgrpo-trajectory": named}, prefix="/set/math")
        assert answer.headers["x-tfgrpo-set"] == "math@1"
        return upstream.seen[-1].body.decode()

    assert proxy.request("PUT", "/admin/api/sets/math/deployment", arm).status == 200
    assert "Prefer the dear option." in given("begun before")
    assert proxy.request("POST", PATH, body(reason="poison")).status == 200
    said = given("begun before")
    assert ("Prefer the dear option." in said, "Check the sign." in said) == (False, True)
    assert given("begun after") == said == given("begun before")
    assert proxy.request("GET", "/status").json["entries_left_out"] == 1
    change = proxy.request("GET", "/admin/api/sets/math/history").json["history"][0]
    assert (change["action"], change["entries"]) == ("withdraw", ["e2"])


def test_a_client_that_pins_what_is_live_is_rid_of_it(proxy: RunningProxy, upstream: RawUpstream) -> None:
    proxy.request("POST", PATH, body())
    assert proxy.chat(headers={"x-tfgrpo-set": "math@1"}).status == 200
    assert "Prefer the dear option." not in upstream.seen[-1].body.decode()


def test_a_client_that_pins_what_was_live_is_rid_of_it_with_the_deployment(
    proxy: RunningProxy, upstream: RawUpstream
) -> None:
    proxy.request("POST", PATH, body(deploy=True))
    assert proxy.chat(headers={"x-tfgrpo-set": "math@1"}).status == 200
    assert "Prefer the dear option." not in upstream.seen[-1].body.decode()


def test_a_dry_run_changes_nothing(proxy: RunningProxy) -> None:
    answer = proxy.request("POST", PATH, body(dry_run=True, deploy=True)).json
    assert (answer["dry_run"], answer["sets"][0]["gone"]) == (True, [{"id": "e2", "text": "Prefer the dear option."}])
    assert proxy.request("GET", PATH).json == {"withdrawals": []}
    assert len(proxy.request("GET", "/admin/api/sets/math/versions").json["versions"]) == 1


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"kind": "source", "name": "nobody"}, 404),
        ({"kind": "exchange", "name": "nobody"}, 404),
        ({"kind": "app", "name": "nobody"}, 404),
        ({"kind": "user", "name": "bad"}, 400),
        ({"kind": "source", "name": ""}, 400),
        ({"kind": "source"}, 400),
    ],
)
def test_what_cannot_be_withdrawn_is_refused(proxy: RunningProxy, asked: dict[str, Any], status: int) -> None:
    assert proxy.request("POST", PATH, asked).status == status


def test_on_postgresql_what_awaits_approval_or_was_withdrawn_is_refused_as_a_conflict(
    postgresql: Server, start_proxy: StartProxy, upstream: RawUpstream
) -> None:
    with postgresql.database() as url:
        proxy = start_proxy(upstream.base_url, store={"url": url}, training={"approval": "required"})
        with closing(Store.open(url)) as store:
            entries = (Experience("e1", "Check the sign.", ("g",)), Experience("e2", "Skip units.", ("bad",)))
            store.sets.add_version("math", Library(entries, 3), status="by hand")
            fresh = (Experience("e3", "Check the units.", ("h",)),)
            store.sets.add_version("math", Library(fresh, 4), status="unproven", run="r")
        assert proxy.request("POST", PATH, body()).status == 200
        for version, said in ((1, "withdrawn (entries e2)"), (2, "approval")):
            answer = proxy.request("PUT", "/admin/api/sets/math/deployment", {"live": version})
            assert (answer.status, said in answer.json["error"]["message"]) == (409, True)
        proxy.stop()
