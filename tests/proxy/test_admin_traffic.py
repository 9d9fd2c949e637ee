"""The admin API's list of exchanges, over HTTP, on both stores."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.routing import Route

from proxy.admin_traffic import TrafficApi
from tests.conftest import RunningProxy, StartProxy
from tests.proxy.asgi import call
from tests.proxy.examples import exchange
from tfgrpo.store import Batch, Store
from tfgrpo.store.browsing import WINDOW
from tfgrpo.types import Bodies


@pytest.fixture
def proxy(url: str, start_proxy: StartProxy) -> RunningProxy:
    return start_proxy(store={"url": url})


def fill(proxy: RunningProxy, count: int, **changes: Any) -> list[str]:
    """Record exchanges of which three begin at each moment; return their ids, the newest first."""
    made = [
        replace(exchange(f"ex-{number:02}", trajectory=f"t-{number % 2}"), started_at=1_000.1 + number // 3, **changes)
        for number in range(count)
    ]
    with closing(Store.open(proxy.settings.store.url)) as store:
        store.traffic.add(Batch(tuple((one, Bodies()) for one in made)))
    return [one.id for one in reversed(made)]


def pages(proxy: RunningProxy, **query: object) -> Iterator[dict[str, Any]]:
    """Ask for a list and go on as its answers say."""
    following: dict[str, object] = {}
    while True:
        answer = proxy.request("GET", f"/admin/api/exchanges?{urlencode({**query, **following})}")
        assert answer.status == 200, answer.body
        yield answer.json
        if answer.json["next"] is None:
            return
        following = {"next": answer.json["next"]}


def ids(found: Iterator[dict[str, Any]]) -> list[str]:
    return [one["id"] for page in found for one in page["exchanges"]]


@pytest.mark.parametrize("limit", [1, 2, 4, 500])
def test_pages_show_every_exchange_once_where_several_began_at_one_moment(proxy: RunningProxy, limit: int) -> None:
    made = fill(proxy, 10)
    assert ids(pages(proxy, limit=limit)) == made
    assert ids(pages(proxy, limit=limit, set="math")) == made
    assert ids(pages(proxy, limit=limit, app="default")) == made
    assert ids(pages(proxy, limit=limit, app="default", trajectory="t-1")) == made[::2]
    assert ids(pages(proxy, limit=limit, trajectory="t-0")) == made[1::2]
    assert ids(pages(proxy, limit=limit, before=1_002.1)) == made[4:]


def test_a_page_that_ran_out_of_time_says_how_far_back_it_came_and_goes_on(url: str) -> None:
    rows = range(2 * WINDOW + 2)
    made = [exchange(f"ex-{number:05}", app="rare" if number == 1 else "default") for number in rows]
    with closing(Store.open(url)) as store:
        at = {one.id: 1_000.0 + number for number, one in enumerate(made)}
        store.traffic.add(Batch(tuple((replace(one, started_at=at[one.id]), Bodies()) for one in made)))
        api = Starlette(routes=[Route("/", TrafficApi(store, seconds=0.0).exchanges)])
        first = asyncio.run(call(api, "GET", "/?app=rare")).json
        assert (first["exchanges"], first["back_to"]) == ([], at[made[WINDOW + 2].id])
        second = asyncio.run(call(api, "GET", f"/?app=rare&next={first['next']}")).json
        assert (second["exchanges"], second["back_to"]) == ([], at[made[2].id])
        third = asyncio.run(call(api, "GET", f"/?app=rare&next={second['next']}")).json
        found = [one["id"] for one in third["exchanges"]]
        assert (found, third["next"], third["back_to"]) == (["ex-00001"], None, None)


def test_a_list_is_filtered(proxy: RunningProxy) -> None:
    fill(proxy, 3)
    (made,) = fill(proxy, 1, id="ex-law", app="desk", set="law")
    assert made == "ex-law"
    for query in ({"set": "law"}, {"app": "desk"}, {"app": "desk", "trajectory": "t-0"}):
        assert ids(pages(proxy, **query)) == ["ex-law"], query
    assert ids(pages(proxy, app="desk", trajectory="t-1")) == []


# Texts that are no base64, no JSON, no place, or one that a store could not compare: [1], ["a","b"], {}, [1,2],
# [true,"a"], [NaN,"a"], [1,"\ud800"], [1,"\u0000"].
@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "%00", "ä", "AAAA", "W" * 4_001, "W" * 4_000, "WzFd", "WyJhIiwiYiJd", "e30", "WzEsMl0"),
        *("W3RydWUsImEiXQ", "W05hTiwiYSJd", "WzEsIlx1ZDgwMCJd", "WzEsIlx1MDAwMCJd"),
    ],
)
def test_a_place_that_no_answer_said_is_refused(proxy: RunningProxy, text: str) -> None:
    answer = proxy.request("GET", f"/admin/api/exchanges?{urlencode({'next': text})}")
    assert (answer.status, answer.json["error"]["param"]) == (400, "next")
