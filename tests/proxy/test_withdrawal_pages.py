from __future__ import annotations

import re
from contextlib import closing

import pytest

from tests.conftest import RunningProxy, StartProxy
from tests.proxy.browser import Browser, text
from tests.tfgrpo.store.examples import assignment, exchange
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Experience, Library

ENTRIES = (Experience("e1", "Check the sign.", ("g",)), Experience("e2", "Prefer a <b & c> d.", ("bad@0",)))


@pytest.fixture
def proxy(start_proxy: StartProxy) -> RunningProxy:
    made = start_proxy(server={"admin_key": "root"})
    store = Store.open(made.settings.store.url)
    store.sets.add_version("math", Library(ENTRIES, 3), status="by hand")
    store.sets.deploy("math", live=1, reason="", actor="me")
    store.close()
    return made


@pytest.fixture
def person(proxy: RunningProxy) -> Browser:
    made = Browser(proxy)
    assert made.post("/admin/login", {"key": "root"}).status == 303
    return made


def withdraw(person: Browser, **fields: str) -> tuple[int, str]:
    answer = person.send("/admin/withdraw", **{"kind": "source", "name": "bad@0", **fields})
    return answer.status, text(answer)


def seen(page: str) -> str:
    found = re.search(r'name="seen" value="([^"]*)"', page)
    assert found
    return found.group(1)


def test_an_entry_offers_to_withdraw_the_groups_that_it_rests_on(person: Browser) -> None:
    shown = text(person.get("/admin/sets/math/versions/1"))
    assert re.findall(r'name="kind" value="(\w+)"><input type="hidden" name="name" value="([^"]+)"', shown) == [
        ("source", "g"),
        ("source", "bad@0"),
    ]


def test_a_page_says_what_goes_and_nothing_happens_before_it_is_confirmed(person: Browser) -> None:
    status, shown = withdraw(person)
    assert status == 200
    assert "<del>Prefer a &lt;b &amp; c&gt; d.</del>" in shown
    assert "followed by a new one of 1 entry, without:" in shown
    assert "live requests the new version at once" in shown
    assert withdraw(person)[0] == 200


def test_confirmed_it_is_deployed_and_stands_in_the_history(person: Browser, proxy: RunningProxy) -> None:
    mark = seen(withdraw(person)[1])
    assert withdraw(person, confirmed="yes", seen=mark, deploy="yes", reason="poison")[0] == 303
    shown = text(person.get("/admin/sets/math"))
    assert "source bad@0 withdrawn: poison" in shown
    key = {"authorization": "Bearer root"}
    assert proxy.request("GET", "/admin/api/sets/math/deployment", None, key).json["live"] == 2


def test_without_the_tick_live_stays(person: Browser, proxy: RunningProxy) -> None:
    mark = seen(withdraw(person)[1])
    assert withdraw(person, confirmed="yes", seen=mark)[0] == 303
    key = {"authorization": "Bearer root"}
    assert proxy.request("GET", "/admin/api/sets/math/deployment", None, key).json["live"] == 1
    assert len(proxy.request("GET", "/admin/api/sets/math/versions", None, key).json["versions"]) == 2


def test_what_is_out_of_date_unknown_or_unfit_is_refused(person: Browser) -> None:
    assert withdraw(person, confirmed="yes", seen="math@7:3")[0] == 409
    assert withdraw(person, name="nobody")[0] == 404
    assert withdraw(person, kind="user")[0] == 400


def test_the_page_of_a_trajectory_offers_to_withdraw_it(person: Browser, proxy: RunningProxy) -> None:
    with closing(Store.open(proxy.settings.store.url)) as store:
        store.traffic.add(Batch(((exchange(1), Bodies()),), (assignment(1),)))
    shown = text(person.get("/admin/traffic/trajectory?app=default&id=t-1"))
    assert re.findall(r'name="kind" value="(\w+)">\s*<input type="hidden" name="name" value="([^"]+)"', shown) == [
        ("exchange", "ex-1")
    ]
