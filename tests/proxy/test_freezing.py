"""What an experiment has counted stays counted, whatever becomes of labels and traffic. On both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from proxy.experiments import Books, Experiments
from tests.proxy import examples
from tests.proxy.drawn import DAY, HOUR, SHARES, Traffic, deploy
from tfgrpo.configuration import SafetySettings
from tfgrpo.experiment import Levels
from tfgrpo.store import Store
from tfgrpo.types import Arm

GOOD: dict[Arm, float] = {"live": 0.7, "candidate": 0.5, "control": 0.4}
FIRST = (-1.0, "")


@pytest.fixture(params=["sqlite", "postgresql"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        opened = examples.store(tmp_path)
        deploy(opened)
        yield opened
        opened.close()
        return
    started: Any = request.getfixturevalue("postgresql")
    with started.database() as url:
        opened = Store.open(url, migrate=True)
        deploy(opened)
        yield opened
        opened.close()


@pytest.fixture
def traffic(kept: Store) -> Traffic:
    return Traffic(kept)


def anew(traffic: Traffic) -> Experiments:
    """The experiments as a proxy that has just begun sees them."""
    return Experiments(traffic.store, window=DAY, early=HOUR, levels=Levels(), clock=traffic.clock)


def said(books: Books | None) -> object:
    """All that the books say, to be compared."""
    assert books is not None
    account = books.account
    assert account.early is not None
    assert account.failed is not None
    effects = [account.early, account.failed]
    for pair in account:
        effects += [pair.reward, pair.fresh, pair.missing_as_0, pair.missing_as_1, pair.worst, pair.best]
        effects += [pair.labelled, pair.longer, pair.slower, pair.unusual]
    return [vars(tally) for tally in account.tallies.values()], [
        (one.sequence.count, one.sequence.mean, one.sequence.interval(0.05)) for one in effects
    ]


def test_books_are_the_same_after_a_purge_and_a_restart(traffic: Traffic) -> None:
    traffic.many(200, GOOD)
    traffic.now += 2 * DAY
    before = said(anew(traffic).look("math"))
    while some := traffic.store.retention.page(FIRST, before=None):
        traffic.store.retention.erase(some)
    assert said(anew(traffic).look("math")) == before


def test_what_comes_after_a_purge_is_counted_on_top(traffic: Traffic) -> None:
    traffic.many(100, GOOD)
    traffic.now += 2 * DAY
    anew(traffic).look("math")
    traffic.store.retention.erase(traffic.store.retention.page(FIRST, before=None))
    traffic.many(50, GOOD)
    traffic.now += 2 * DAY
    books = anew(traffic).look("math")
    assert books is not None
    assert sum(tally.n for tally in books.account.tallies.values()) == 150


def test_a_label_that_goes_is_still_counted(traffic: Traffic) -> None:
    traffic.begin("candidate", 1.0)
    traffic.begin("live", 0.0)
    traffic.now = 2 * DAY
    before = said(anew(traffic).look("math"))
    assert traffic.store.retention.drop_labels(traffic.now) == 2
    assert said(anew(traffic).look("math")) == before


def test_two_workers_that_look_in_turn_count_each_trajectory_once_and_alike(traffic: Traffic) -> None:
    first, second = anew(traffic), anew(traffic)
    for _ in range(4):
        traffic.many(40, GOOD, seconds=3600)
        first.look("math")
        second.look("math")
    traffic.now += 2 * DAY
    one, other = second.look("math"), first.look("math")
    assert said(one) == said(other)
    assert one is not None
    assert sum(tally.n for tally in one.account.tallies.values()) == 160
    assert said(anew(traffic).look("math")) == said(one)


def test_an_erased_trajectory_leaves_a_number_and_no_name(traffic: Traffic) -> None:
    traffic.begin("live", 1.0)
    traffic.now = 2 * DAY
    anew(traffic).look("math")
    rows, last = traffic.store.frozen.since("math", 1, 0)
    assert {row.kind for row in rows} == {"labelled", "ended", "settled"}
    assert {row.trajectory for row in rows} == {"t-000001"}
    traffic.store.retention.erase(traffic.store.retention.page(FIRST, before=None))
    kept, again = traffic.store.frozen.since("math", 1, 0)
    assert again == last
    assert kept == [structs.replace(row, trajectory=None) for row in rows]


def test_the_last_trajectories_of_a_replaced_experiment_are_frozen_when_they_come_of_age(traffic: Traffic) -> None:
    traffic.many(20, GOOD)
    experiments = anew(traffic)
    experiments.freeze()
    traffic.store.sets.deploy("math", live=1, candidate=2, shares=SHARES, reason="again", actor="me")
    traffic.now += 2 * DAY
    experiments.freeze()
    traffic.store.retention.erase(traffic.store.retention.page(FIRST, before=None))
    books = anew(traffic).look("math", 1)
    assert books is not None
    assert sum(tally.n for tally in books.account.tallies.values()) == 20


def test_a_set_with_one_arm_freezes_nothing_by_itself(traffic: Traffic) -> None:
    traffic.store.sets.deploy("math", live=1, reason="alone", actor="me")
    traffic.begin("live", 1.0, probability=1.0, revision=2)
    traffic.now = 2 * DAY
    anew(traffic).freeze()
    assert traffic.store.frozen.since("math", 2, 0) == ([], 0)


def test_labels_by_the_key_that_made_the_traffic_count_only_where_they_may(traffic: Traffic) -> None:
    safety = SafetySettings(own_labels="ignore")
    row = traffic.begin("live", 1.0)
    other = structs.replace(
        examples.label("by-another", 0.0), exchange=f"ex-{row.trajectory}", source="grader", credential="judge"
    )
    traffic.store.labels.add([structs.replace(other, created_at=traffic.now + 90)])
    traffic.begin("live", 1.0)
    traffic.now += 2 * DAY
    of_others = Experiments(
        traffic.store, window=DAY, early=HOUR, levels=Levels(), safety=safety, clock=traffic.clock
    ).look("math")
    assert of_others is not None
    assert of_others.account.early is not None
    tally = of_others.account.tallies["live"]
    assert (tally.n, tally.labelled, tally.rewards, of_others.account.early.sequence.count) == (2, 1, 0.0, 1)
