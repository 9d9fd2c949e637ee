"""A library over its budget: refused at deployment, or a choice of it for each trajectory."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.upstreams import chat
from tfgrpo.store import Store
from tfgrpo.types import Experience, Library

LESSONS = ("Convert miles to kilometres first.", "Check the sign of a square root.")
SMALL = {"max_entries": 1}
LEXICAL = SMALL | {"selection": "lexical"}


def say(proxy: RunningProxy, *texts: str) -> None:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    assert proxy.chat(messages=messages).status == 200


def over(proxy: RunningProxy, arm: dict[str, Any]) -> tuple[int, Any]:
    lessons = [{"text": text} for text in LESSONS]
    assert proxy.request("POST", "/admin/api/sets/math/versions", {"experiences": lessons}).status == 201
    answered = proxy.request("PUT", "/admin/api/sets/math/deployment", arm)
    return answered.status, answered.json


@pytest.mark.parametrize("arm", [{"live": 1}, {"candidate": 1, "shares": {"candidate": 0.1}}])
def test_a_library_over_its_budget_is_refused_at_deployment(
    start_proxy: StartProxy, start_upstream: StartUpstream, arm: dict[str, Any]
) -> None:
    proxy = start_proxy(start_upstream(chat).base_url, training=SMALL)
    status, body = over(proxy, arm)
    assert (status, body["error"]["param"]) == (400, next(iter(arm)))
    assert "2 entries (at most 1)" in body["error"]["message"]
    assert "selection: lexical" in body["error"]["message"]


def test_a_trajectory_gets_what_its_first_request_chose_in_later_turns_too(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(chat)
    proxy = start_proxy(upstream.base_url, routes=[{"set": "math"}], training=LEXICAL)
    proxy.deploy("math", *LESSONS)
    say(proxy, "Take the square root of 9.")
    first = upstream.wait_seen().json["messages"][0]
    say(proxy, "Take the square root of 9.", "hello", "Now miles to kilometres: convert 3.")
    second = upstream.seen[-1].json["messages"][0]
    assert LESSONS[1] in first["content"]
    assert LESSONS[0] not in first["content"]
    assert second == first


def test_a_trajectory_loses_what_is_withdrawn_of_its_choice_and_gets_nothing_for_it(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(chat)
    proxy = start_proxy(upstream.base_url, routes=[{"set": "math"}], training=LEXICAL)
    store = Store.open(proxy.settings.store.url)
    entries = tuple(Experience(f"e{at}", text, (f"g{at}",)) for at, text in enumerate(LESSONS, 1))
    store.sets.add_version("math", Library(entries, 3), status="by hand")
    store.close()
    assert proxy.request("PUT", "/admin/api/sets/math/deployment", {"live": 1}).status == 200
    named = {"x-tfgrpo-trajectory": "one"}
    proxy.chat("Take the square root of 9.", headers=named)
    assert LESSONS[1] in upstream.seen[-1].body.decode()
    withdrawn = {"kind": "source", "name": "g2"}
    assert proxy.request("POST", "/admin/api/withdrawals", withdrawn).status == 200
    proxy.chat("Take the square root of 9.", headers=named)
    assert [one for one in LESSONS if one in upstream.seen[-1].body.decode()] == []
    proxy.chat("Take the square root of 9.")
    assert LESSONS[0] in upstream.seen[-1].body.decode()


def test_the_choice_is_recorded_and_holds_on_another_proxy(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(chat)
    proxy = start_proxy(upstream.base_url, routes=[{"set": "math"}], training=LEXICAL)
    proxy.deploy("math", *LESSONS)
    named = {"x-tfgrpo-trajectory": "one"}
    proxy.chat("Take the square root of 9.", headers=named)
    other = start_proxy(
        upstream.base_url, routes=[{"set": "math"}], training=LEXICAL, store={"url": proxy.settings.store.url}
    )
    proxy.stop()
    other.chat("Now convert miles to kilometres.", headers=named)
    assert LESSONS[1] in upstream.seen[-1].json["messages"][0]["content"]
