"""A live experiment as its user meets it: a running proxy, real sockets, labels by HTTP."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.upstreams import chat


@pytest.fixture
def automatic(start_proxy: StartProxy, start_upstream: StartUpstream) -> RunningProxy:
    return start_proxy(
        start_upstream(chat).base_url,
        routes=[{"set": "s", "models": ["*"]}],
        promotion={"mode": "auto", "outstanding": 3},
    )


def try_candidate(proxy: RunningProxy, share: float) -> None:
    proxy.deploy("s", "Check units.")
    proxy.deploy("s", "Check signs.", live=1, candidate=2, shares={"candidate": share})


def test_the_bound_holds_and_a_label_makes_room(automatic: RunningProxy) -> None:
    try_candidate(automatic, 1.0)
    answers = [automatic.chat(f"task {number}") for number in range(8)]
    assert Counter(one.headers["x-tfgrpo-arm"] for one in answers) == {"candidate": 3, "live": 5}
    assert {one.headers["x-tfgrpo-set"] for one in answers} == {"s@1", "s@2"}
    label = {"exchange_id": answers[0].headers["x-tfgrpo-exchange"], "value": True}
    assert automatic.request("POST", "/v1/feedback", label, {"authorization": "Bearer sk-client"}).status == 200
    # Counted anew several times a second: at the latest one of these comes after that.
    arms = (automatic.chat(f"later {number}").headers["x-tfgrpo-arm"] for number in range(3000))
    assert next(arm for arm in arms if arm == "candidate")


def test_the_experiment_is_served(automatic: RunningProxy) -> None:
    try_candidate(automatic, 0.5)
    found = automatic.request("GET", "/admin/api/sets/s/experiment").json
    assert [(one["arm"], one["version"], one["probability"]) for one in found["arms"]] == [
        ("candidate", 2, 0.5),
        ("live", 1, 0.5),
    ]
    assert (found["promotion"], found["decision"]["action"]) == ("auto", "none")


def test_an_unknown_set_has_no_experiment(automatic: RunningProxy) -> None:
    refused = automatic.request("GET", "/admin/api/sets/nobody/experiment")
    assert refused.status == 404
    assert refused.json["error"]["type"] == "proxy_error"
    assert "GET /admin/api/sets" in refused.json["error"]["message"]
