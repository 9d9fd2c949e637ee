from __future__ import annotations

import html
from typing import Any

import pytest

from proxy.dashboard.groups import GROUPS, differences
from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.proxy.browser import Browser, text
from tests.upstreams import chat
from tfgrpo.store import Store

HOSTILE = "<script>alert(1)</script> & 'quotes'"


def ended(proxy: RunningProxy, *groups: dict[str, Any], **result: Any) -> None:
    """Leave a run behind that met these groups."""
    store = Store.open(proxy.settings.store.url)
    try:
        store.runs.start("r1", set_name="math", arguments={}, started_at=1.0)
        step = {"step": 1, "epoch": 1, "contrasts": groups, **result}
        after = [{"id": "e1", "text": "Kept.", "sources": ["g1"]}, {"id": "e2", "text": "Other.", "sources": ["g2"]}]
        store.runs.finish("r1", status="finished", result={"steps": [step], "experiences": after})
    finally:
        store.close()


def test_a_group_shows_its_rollouts_the_best_first_and_what_was_made_of_it(start_proxy: StartProxy) -> None:
    proxy = start_proxy()
    group = {"key": "g1", "task": HOSTILE, "rewards": [0.0, 1.0], "answers": ["it is four", f"it is five {HOSTILE}"]}
    edit = {"operation": "add", "ids": [], "text": f"Say {HOSTILE}", "why": "agreed", "sources": ["g1"]}
    ended(proxy, group, applied=[edit, {**edit, "text": "of another", "sources": ["g2"]}])
    person = Browser(proxy)
    assert f'href="{GROUPS}/r1/1/0"' in text(person.get(GROUPS))
    answer = person.get(f"{GROUPS}/r1/1/0")
    shown = text(answer)
    assert shown.index("it is five") < shown.index('class="spoken">it is four')
    assert "it is <del>four</del><ins>five " in shown
    assert "<code>e1</code> Kept." in shown
    assert "of another" not in shown
    assert "Other." not in shown
    assert html.escape(f"Say {HOSTILE}").replace("&#x27;", "&#39;") in shown
    assert "<script>alert" not in shown


def test_a_rollout_of_traffic_is_read_from_the_traffic_as_far_as_it_is_there(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    proxy = start_proxy(start_upstream(chat).base_url)
    name = proxy.chat("what is it?", {"x-tfgrpo-set": "math"}).headers["x-tfgrpo-trajectory"]
    while not proxy.request("GET", f"/admin/api/exchanges?trajectory={name}").json["exchanges"]:
        continue
    ended(proxy, {"key": "g1", "task": "t", "rewards": [1.0, 0.0], "trajectories": [name, "erased"]})
    shown = text(Browser(proxy).get(f"{GROUPS}/r1/1/0"))
    assert f'<code>{name}</code></h3> <p class="spoken">assistant: ' in shown
    assert '<code>erased</code></h3> <p class="quiet">What it said is not kept any more.' in shown


def test_a_group_of_an_earlier_release_is_shown_by_its_rewards(start_proxy: StartProxy) -> None:
    proxy = start_proxy()
    ended(proxy, {"task": "t", "rewards": [1.0, None]})
    assert "did not record it" in text(Browser(proxy).get(f"{GROUPS}/r1/1/0"))


def test_what_is_not_there_is_a_page_that_says_so(start_proxy: StartProxy) -> None:
    proxy = start_proxy()
    person = Browser(proxy)
    assert "No run has ended yet." in text(person.get(GROUPS))
    ended(proxy, {"task": "t", "rewards": [1.0, 0.0]})
    for path in ("?run=none", "/none/1/0", "/r1/2/0", "/r1/1/1", "/r1/1/x"):
        assert person.get(GROUPS + path).status == 404, path


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("a b", "a b", [("same", "a b")]),
        ("", "", []),
        ("a", "", [("removed", "a")]),
        ("a b c", "a x c", [("same", "a "), ("removed", "b "), ("added", "x "), ("same", "c")]),
    ],
)
def test_texts_are_compared_word_by_word(before: str, after: str, said: list[tuple[str, str]]) -> None:
    assert differences(before, after) == said
