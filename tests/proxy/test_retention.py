"""What is too old goes beside live traffic, and a live experiment keeps what it needs. On both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from proxy.experiments import Experiments
from proxy.retention import Retention
from proxy.reward_hours import RewardHours
from tests.proxy import examples
from tests.proxy.drawn import DAY, HOUR, Traffic, deploy
from tfgrpo.experiment import Levels
from tfgrpo.retention import RetentionSettings
from tfgrpo.store import Store
from tfgrpo.types import Arm

GOOD: dict[Arm, float] = {"live": 0.7, "candidate": 0.5, "control": 0.4}


@pytest.fixture(params=["sqlite", "postgresql"])
def traffic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Traffic]:
    if request.param == "sqlite":
        opened = examples.store(tmp_path)
        deploy(opened)
        yield Traffic(opened)
        opened.close()
        return
    started: Any = request.getfixturevalue("postgresql")
    with started.database() as url:
        opened = Store.open(url, migrate=True)
        deploy(opened)
        yield Traffic(opened)
        opened.close()


def experiments(traffic: Traffic) -> Experiments:
    return Experiments(traffic.store, window=DAY, early=HOUR, levels=Levels(), clock=traffic.clock)


async def look(traffic: Traffic, **ages: float) -> dict[str, Any]:
    """Have a proxy look once, and return what it deleted."""
    sums = RewardHours(traffic.store, clock=traffic.clock)
    made = Retention(
        traffic.store, experiments(traffic), RetentionSettings(**ages), sums=sums, pause=0.0, clock=traffic.clock
    )
    await made.look()
    await made.stop()
    return made.stats


def settled(traffic: Traffic) -> int:
    books = experiments(traffic).look("math")
    assert books is not None
    return sum(tally.n for tally in books.account.tallies.values())


async def test_each_kind_goes_at_its_own_age(traffic: Traffic) -> None:
    traffic.begin("live", 1.0)
    traffic.now = 3 * DAY
    traffic.begin("live", 1.0)
    traffic.now = 4 * DAY
    await look(traffic, bodies=2 * DAY)
    found = {one.id: one.record for one in traffic.store.traffic.page(limit=9)}
    assert found == {"ex-t-000001": "expired", "ex-t-000002": "full"}
    await look(traffic, labels=2 * DAY)
    assert len(traffic.store.labels.of_trajectory("default", "t-000001")) == 0
    assert len(traffic.store.labels.of_trajectory("default", "t-000002")) == 1
    await look(traffic, metadata=2 * DAY)
    assert [one.id for one in traffic.store.traffic.page(limit=9)] == ["ex-t-000002"]


async def test_an_experiment_is_frozen_before_anything_goes(traffic: Traffic) -> None:
    traffic.many(300, GOOD)
    traffic.now += 2 * DAY
    stats = await look(traffic, labels=HOUR, metadata=HOUR)
    assert traffic.store.traffic.page(limit=9) == []
    assert (stats["exchanges"], settled(traffic)) == (300, 300)


async def test_what_an_experiment_has_yet_to_count_stays(traffic: Traffic) -> None:
    traffic.many(10, GOOD)
    traffic.now += DAY / 2
    await look(traffic, labels=1.0, metadata=1.0)
    assert len(traffic.store.traffic.page(limit=99)) == 10
    traffic.now += 2 * DAY
    await look(traffic, labels=1.0, metadata=1.0)
    assert (len(traffic.store.traffic.page(limit=99)), settled(traffic)) == (0, 10)


async def test_traffic_outside_of_experiments_is_not_held(traffic: Traffic) -> None:
    traffic.add([examples.assignment("t-old")], [structs.replace(examples.exchange("ex-old"), started_at=0.0)])
    traffic.now = 9.5 * DAY
    traffic.begin("live", 1.0)
    traffic.now = 10 * DAY
    await look(traffic, metadata=DAY / 4)
    assert [one.id for one in traffic.store.traffic.page(limit=9)] == ["ex-t-000001"]


async def test_whoever_does_not_hold_the_lease_deletes_nothing(traffic: Traffic) -> None:
    assert traffic.store.runs.acquire("retention", "another", 60)
    traffic.begin("live", 1.0)
    traffic.now = 4 * DAY
    await look(traffic, bodies=DAY)
    assert traffic.store.traffic.page(limit=1)[0].record == "full"


async def test_the_lease_is_given_back_at_the_end(traffic: Traffic) -> None:
    await look(traffic)
    assert traffic.store.runs.acquire("retention", "another", 60)
