from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.upstreams import chat
from tfgrpo import library
from tfgrpo.store import Store

VERSION = "/admin/api/sets/math/versions/1"


@pytest.fixture
def proxy(start_proxy: StartProxy, start_upstream: StartUpstream) -> RunningProxy:
    return learned(start_proxy(start_upstream(chat).base_url, training={"approval": "required"}))


def learned(made: RunningProxy) -> RunningProxy:
    store = Store.open(made.settings.store.url)
    store.sets.add_version("math", library.from_texts(["Check the sign."]), status="helps", run="r")
    store.close()
    return made


def deploy(proxy: RunningProxy) -> int:
    return proxy.request("PUT", "/admin/api/sets/math/deployment", {"live": 1}).status


def test_a_learned_version_is_deployed_once_a_person_approved_it(proxy: RunningProxy) -> None:
    refused = proxy.request("PUT", "/admin/api/sets/math/deployment", {"live": 1})
    assert refused.status == 409
    assert "POST /admin/api/sets/math/versions/1/approve" in refused.json["error"]["message"]
    assert proxy.request("GET", VERSION).json["approval"] == "awaiting"
    approved = proxy.request("POST", f"{VERSION}/approve", {"reason": "read it", "by": "ann"})
    assert (approved.status, approved.json["approval"]) == (200, "approved")
    assert deploy(proxy) == 200
    said = proxy.request("GET", "/admin/api/sets/math/history").json["history"][-1]
    assert (said["action"], said["actor"], said["reason"]) == ("approve", "ann (admin api)", "read it")


def test_approval_needs_no_body_and_a_rejection_needs_a_reason(proxy: RunningProxy) -> None:
    assert proxy.request("POST", f"{VERSION}/approve").status == 200
    for body in ({}, {"reason": " "}):
        refused = proxy.request("POST", f"{VERSION}/reject", body)
        assert (refused.status, refused.json["error"]["param"]) == (400, "reason")
    assert proxy.request("POST", f"{VERSION}/reject", {"reason": "too bold"}).json["approval"] == "rejected"
    assert deploy(proxy) == 409


def test_a_version_that_is_not_there_is_a_404(proxy: RunningProxy) -> None:
    assert proxy.request("POST", "/admin/api/sets/math/versions/7/approve").status == 404


def test_a_page_tells_apart_what_awaits_approval_and_what_needs_none(
    proxy: RunningProxy, start_proxy: StartProxy, tmp_path: Path
) -> None:
    free = learned(start_proxy(store={"url": f"sqlite:///{tmp_path / 'free.db'}"}))
    pages = [one.request("GET", "/admin/sets/math/versions/1").body.decode() for one in (proxy, free)]
    assert ["(none is required)" in page for page in pages] == [False, True]
    assert all("awaiting" in page for page in pages)
