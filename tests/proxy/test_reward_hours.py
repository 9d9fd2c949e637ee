"""Labels, added up by the hour in which the trajectory began that they speak of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.reward_hours import LANDING_SECONDS, RewardHours
from tests.proxy import examples
from tests.proxy.drawn import HOUR, Traffic, deploy
from tfgrpo.store import Rewarded, Store
from tfgrpo.types import Label


@pytest.fixture
def traffic(tmp_path: Path) -> Iterator[Traffic]:
    opened: Store = examples.store(tmp_path)
    deploy(opened)
    yield Traffic(opened)
    opened.close()


def count(traffic: Traffic) -> list[Rewarded]:
    hours = RewardHours(traffic.store, clock=traffic.clock)
    while hours.count():
        continue
    return sorted(traffic.store.hours.rewards("math", since=0, width=1), key=lambda one: (one.step, one.arm))


def labelled(traffic: Traffic) -> int:
    return sum(one.count for one in traffic.store.hours.facts(since=0, width=1) if one.name == "labelled")


def judge(traffic: Traffic, name: str, value: float, **target: str | None) -> None:
    kept = {"exchange": None, "trajectory": None} | target
    traffic.store.labels.add(
        [Label(name, "default", choice=0, metric="reward", value=value, source="user", credential="",
               created_at=traffic.now, **kept)]
    )  # fmt: skip


def test_a_reward_counts_where_its_trajectory_began_however_late_it_is(traffic: Traffic) -> None:
    traffic.begin("live", 1.0, after=5 * HOUR)
    traffic.begin("candidate", 0.0)
    traffic.now = HOUR
    traffic.begin("live", 0.5)
    traffic.now = 9 * HOUR
    assert count(traffic) == [
        Rewarded(0, "candidate", 1, 0.0),
        Rewarded(0, "live", 1, 1.0),
        Rewarded(1, "live", 1, 0.5),
    ]
    assert labelled(traffic) == 3


def test_a_trajectory_that_is_judged_again_counts_once_and_as_it_was_judged_last(traffic: Traffic) -> None:
    traffic.begin("live", 1.0)
    traffic.now = 100.0
    assert count(traffic) == [Rewarded(0, "live", 1, 1.0)]
    judge(traffic, "again", 0.0, exchange="ex-t-000001")
    judge(traffic, "whole", 0.25, trajectory="t-000001")
    traffic.now = 200.0
    assert count(traffic) == [Rewarded(0, "live", 1, 0.25)]
    assert labelled(traffic) == 1


def test_labels_of_other_metrics_and_of_nothing_known_count_nowhere(traffic: Traffic) -> None:
    traffic.begin("live", None)
    judge(traffic, "unknown", 1.0, exchange="ex-none")
    judge(traffic, "nowhere", 1.0, trajectory="t-none")
    traffic.store.labels.add([
        Label("taste", "default", "ex-t-000001", None, 0, "taste", 1.0, "user", "", 1.0)
    ])  # fmt: skip
    traffic.now = 100.0
    assert count(traffic) == []
    judge(traffic, "known", 1.0, exchange="ex-t-000001")
    traffic.now = 200.0
    assert count(traffic) == [Rewarded(0, "live", 1, 1.0)]


def test_a_label_waits_until_its_exchange_has_landed(traffic: Traffic) -> None:
    traffic.begin("live", 1.0)
    traffic.now = 60.0 + LANDING_SECONDS / 2
    assert count(traffic) == []
    traffic.now += LANDING_SECONDS
    assert count(traffic) == [Rewarded(0, "live", 1, 1.0)]
