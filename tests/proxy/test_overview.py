"""The overview as a person gets it: what passed through, what needs them, and what it says of a bad question."""

from __future__ import annotations

import re
import time

import pytest
from msgspec import structs

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.proxy import examples
from tests.proxy.browser import Browser, text
from tests.upstreams import chat
from tfgrpo.store import START, Batch, Difference, Store
from tfgrpo.store.hours import HOUR
from tfgrpo.types import Experience, Library

HOSTILE = "<script>alert(1)</script>"


def stored(proxy: RunningProxy) -> Store:
    return Store.open(proxy.settings.store.url)


def shown(proxy: RunningProxy, path: str = "/admin") -> str:
    answer = Browser(proxy).get(path)
    assert answer.status == 200
    return text(answer)


def numbers(page: str, name: str) -> list[list[str]]:
    """The rows of a chart's table."""
    table = page[page.index(f'id="{name}-numbers"') :].partition("</table>")[0]
    return [re.findall(r">([^<]*)</t[dh]>", row) for row in table.split("<tr>")[2:]]


def test_a_new_proxy_has_nothing_to_show_and_nothing_to_decide(start_proxy: StartProxy) -> None:
    page = shown(start_proxy())
    assert "Nothing yet. To begin:" in page
    assert "No run is at work." in page
    assert "No label yet." in page


def test_what_passed_through_is_on_the_page_within_moments(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    proxy = start_proxy(start_upstream(chat).base_url)
    proxy.chat("what is it?", {"x-tfgrpo-set": "math"})
    while "<dt>Requests</dt><dd>1</dd>" not in (page := shown(proxy)):
        continue
    assert numbers(page, "traffic")[-1][1:] == ["1", "0"]
    assert re.search(r"<dt>Latency added</dt><dd>[\d.]+ ms", page)
    assert '<dd>0 %</dd><dd class="quiet">0 of 1</dd>' in page


def test_rewards_of_a_set_are_shown_by_arm_with_their_interval(start_proxy: StartProxy) -> None:
    proxy = start_proxy()
    store, now = stored(proxy), time.time()
    store.traffic.add(Batch(assignments=(structs.replace(examples.assignment("t"), set="math"),)))
    spot, to = ("math", int(now // HOUR), "candidate"), (now, "default", "f")
    found = {spot: Difference(4, 4.0), ("law", spot[1], "live"): Difference(1, 0.0)}
    assert store.hours.count(found, after=START, to=to)
    store.close()
    page = shown(proxy, "/admin?set=math&span=day")
    assert numbers(page, "rewards")[-1][1:] == ["1.000", "0.510", "1.000", "4"]
    assert '<h2 id="rewards">Reward by arm, math</h2>' in page
    assert numbers(shown(proxy, "/admin?set=law&span=day"), "rewards")[-1][1:3] == ["0.000", "0.000"]


def test_what_needs_a_person_is_said_with_the_way_to_it(start_proxy: StartProxy) -> None:
    proxy = start_proxy(training={"max_entries": 2})
    store = stored(proxy)
    lessons = tuple(Experience(f"e{number}", f"Lesson {number}.") for number in range(3))
    for count in (1, 3, 1):
        store.sets.add_version("math", Library(lessons[:count], 4), status="unproven")
    store.sets.deploy("math", live=1, candidate=2, shares={"candidate": 0.1}, reason="", actor="me")
    store.runs.start("r1", set_name="math", arguments={}, started_at=1.0)
    store.close()
    while "over its budget" not in (page := shown(proxy)):
        continue
    assert "version 2, candidate, is over its budget (3 entries" in page
    assert "version 3 (unproven) was never deployed." in page
    assert 'href="/admin/sets/math/versions/3"' in page
    assert "run, r1, ended without a word." in page
    assert 'hx-get="/admin/candidates"' in page
    assert "version 2 against 1: undecided" in shown(proxy, "/admin/candidates")


def test_the_bypass_is_said_where_it_is_on(start_proxy: StartProxy) -> None:
    assert "it is on: nothing is injected, nothing is recorded." in shown(start_proxy(server={"bypass": True}))


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("span=year", "span"),
        ("span=day&span=week", "span"),
        ("span=" + "x" * 2000, "span"),
        ("set=unheard-of", "set"),
        ("set=%00", "set"),
        ("set=" + HOSTILE, "set"),
        ("set=%ff", "a field is not UTF-8 text"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_by_name(start_proxy: StartProxy, query: str, named: str) -> None:
    answer = Browser(start_proxy()).get(f"/admin?{query}")
    assert answer.status == 400
    assert f'role="alert">{named}' in text(answer)
    assert HOSTILE not in text(answer)
