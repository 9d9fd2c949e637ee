"""Labels in great number on conversations of several turns, by one key and by ten: what they make of a reward.

Keys, turns and labels are a real proxy's, over HTTP, on both stores. One hand's keys take part in the conversations,
for nobody may label what is none of theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.upstreams import chat
from tfgrpo.forming import form
from tfgrpo.safety_settings import SafetySettings
from tfgrpo.store import Store
from tfgrpo.teaching import of_set
from tfgrpo.traffic import census

HONEST, FLOOD = "sk-honest", 30
TRUTH: Final = {"right": 1.0, "wrong": 0.0}
"""What an honest key says of two rollouts of one task; floods say the contrary."""


@pytest.fixture
def proxy(url: str, start_proxy: StartProxy, start_upstream: StartUpstream) -> RunningProxy:
    return start_proxy(start_upstream(chat).base_url, store={"url": url})


def converse(proxy: RunningProxy, keys: Sequence[str]) -> dict[str, list[str]]:
    """Make both rollouts, a turn by each key; return the ids of their exchanges."""
    found: dict[str, list[str]] = {}
    for name in TRUTH:
        messages: list[dict[str, Any]] = []
        for turn, key in enumerate(keys):
            messages.append({"role": "user", "content": f"Question {turn}?"})
            headers = {"authorization": f"Bearer {key}", "x-tfgrpo-trajectory": name, "x-tfgrpo-group": "task"}
            sent = proxy.chat(messages=messages, headers=headers)
            assert sent.status == 200, sent.body
            found.setdefault(name, []).append(sent.headers["x-tfgrpo-exchange"])
            messages.append(sent.json["choices"][0]["message"])
    return found


def judge(proxy: RunningProxy, key: str, labels: Iterator[dict[str, Any]]) -> None:
    """Post labels with a key."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    stored = proxy.request("POST", "/v1/feedback", json.dumps(list(labels)).encode(), headers)
    assert stored.status == 200, stored.body


def honest() -> Iterator[dict[str, Any]]:
    for name, value in TRUTH.items():
        yield {"trajectory_id": name, "value": value, "source": "honest"}


def flood(key: str, labels: int = FLOOD) -> Iterator[dict[str, Any]]:
    """The contrary, under so many sources."""
    for name, value in TRUTH.items():
        for number in range(labels):
            yield {"trajectory_id": name, "value": 1 - value, "source": f"{key}-{number}"}


def rewards(proxy: RunningProxy) -> tuple[dict[str, float], int]:
    """Stop the proxy, so that all is recorded; return what rollouts earn in training, and how many groups contrast."""
    proxy.stop()
    teaching = of_set(None, (), SafetySettings())
    with closing(Store.open(proxy.settings.store.url)) as store:
        ((group,),) = form(store, teaching=teaching)
        found = {name: value for (name, _), value in group.rewards().items()}
        return found, census(store, teaching=teaching).contrasting


def test_one_key_undoes_a_judgement_with_many_labels_and_does_not_turn_it(proxy: RunningProxy) -> None:
    converse(proxy, [HONEST, "sk-mallory", HONEST, "sk-mallory"])
    judge(proxy, HONEST, honest())
    judge(proxy, "sk-mallory", flood("sk-mallory"))
    found, contrasting = rewards(proxy)
    assert found == {"right": pytest.approx(1 / 2), "wrong": pytest.approx(1 / 2)}
    assert contrasting == 0


def test_one_key_counts_for_half_beside_two_others(proxy: RunningProxy) -> None:
    converse(proxy, [HONEST, "sk-other", "sk-mallory"])
    judge(proxy, HONEST, honest())
    judge(proxy, "sk-other", ({**one, "source": "other"} for one in honest()))
    judge(proxy, "sk-mallory", flood("sk-mallory"))
    assert rewards(proxy)[0] == {"right": pytest.approx(1 / 2), "wrong": pytest.approx(1 / 2)}


@pytest.mark.parametrize("labels", [1, FLOOD])
def test_ten_keys_of_one_hand_turn_a_judgement_by_as_many_labels_as_they_give(proxy: RunningProxy, labels: int) -> None:
    hands = [f"sk-hand-{number}" for number in range(10)]
    converse(proxy, [HONEST, *hands])
    judge(proxy, HONEST, honest())
    for key in hands:
        judge(proxy, key, flood(key, labels))
    theirs = 10 * labels / (10 * labels + 1)
    found, contrasting = rewards(proxy)
    assert found == {"right": pytest.approx(1 - theirs), "wrong": pytest.approx(theirs)}
    assert contrasting == 1


@pytest.mark.parametrize("way", ["on the trajectory", "on a later turn", "under the same source"])
def test_a_label_of_one_key_stands_beside_that_of_another_wherever_it_speaks(proxy: RunningProxy, way: str) -> None:
    made = converse(proxy, [HONEST, "sk-mallory"])
    if way == "under the same source":
        judge(proxy, HONEST, honest())
        judge(proxy, "sk-mallory", ({**one, "value": 1 - one["value"]} for one in honest()))
    else:
        judge(proxy, HONEST, ({"exchange_id": made[name][0], "value": value} for name, value in TRUTH.items()))
        targets = {name: {"exchange_id": made[name][1]} for name in TRUTH}
        if way == "on the trajectory":
            targets = {name: {"trajectory_id": name} for name in TRUTH}
        judge(proxy, "sk-mallory", ({**targets[name], "value": 1 - value} for name, value in TRUTH.items()))
    assert rewards(proxy) == ({"right": 0.5, "wrong": 0.5}, 0)
