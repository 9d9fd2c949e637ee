from __future__ import annotations

import pytest

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo.store import Batch, Deleted, Store
from tfgrpo.types import Bodies, Link

BODIES = Bodies(b"{}", b"{}", "", "", "")
FIRST = (-1.0, "")


@pytest.fixture
def filled(store: Store) -> Store:
    """Two turns of t-1, one of t-2, one of another app's t-3; a label on each exchange, and one on t-1 itself."""
    turns = (
        exchange(1),
        exchange(2),
        exchange(3, app="other"),
        exchange(4, trajectory="t-1"),
    )
    links = tuple(Link(f"k{one.id}", one.app, one.trajectory, one.id, one.started_at) for one in turns)
    started = (assignment(1), assignment(2), assignment(3, app="other"))
    store.traffic.add(Batch(tuple((one, BODIES) for one in turns), started, links))
    store.labels.add([label(n, app="other" if n == 3 else "default") for n in (1, 2, 3, 4)])
    store.labels.add([label(5, exchange=None, trajectory="t-1")])
    return store


def test_exchanges_go_with_all_that_hangs_on_them(filled: Store) -> None:
    assert filled.retention.erase(filled.retention.page(FIRST, before=None)) == Deleted(4, 4, 5, 4, 3)
    assert filled.retention.page(FIRST, before=None) == []


def test_a_trajectory_stays_until_its_last_exchange_goes(filled: Store) -> None:
    assert filled.retention.erase(filled.retention.page(FIRST, before=4.0)) == Deleted(3, 3, 3, 3, 2)
    assert filled.traffic.assignment("default", "t-1") is not None


def test_labels_can_outlive_what_they_speak_of(filled: Store) -> None:
    filled.retention.erase(filled.retention.page(FIRST, before=None), labels=False)
    assert filled.retention.drop_labels(10.0) == 5


def test_another_apps_rows_stay(filled: Store) -> None:
    filled.retention.erase(filled.retention.page(FIRST, before=None, app="default"))
    assert [one.id for one in filled.retention.page(FIRST, before=None)] == ["ex-3"]


@pytest.mark.parametrize("before", [None, 4.0, 2.0])
def test_counting_deletes_nothing_and_says_what_erasing_would(filled: Store, before: float | None) -> None:
    page = filled.retention.page(FIRST, before=before)
    parts = [page[:1], page[1:]] if len(page) > 1 else [page]
    counted = sum((filled.retention.count(some) for some in parts), Deleted())
    assert counted == sum((filled.retention.erase(some) for some in parts), Deleted())


def test_bodies_go_alone(filled: Store) -> None:
    assert (filled.retention.drop_bodies(3.0), filled.retention.drop_bodies(3.0)) == (2, 0)
    assert set(filled.traffic.bodies(["ex-1", "ex-2", "ex-3"])) == {"ex-3"}


def test_an_exchange_says_that_its_bodies_are_too_old(filled: Store) -> None:
    filled.retention.drop_bodies(3.0)
    found = {one.id: one.record for one in filled.traffic.page(limit=9)}
    assert found == {"ex-1": "expired", "ex-2": "expired", "ex-3": "full", "ex-4": "full"}
    assert filled.learnable.without_bodies() == filled.learnable.without_bodies(set_name="math") == 2
    assert filled.learnable.without_bodies(unnamed=True) == 0


def test_what_is_recorded_without_bodies_takes_no_row_of_them(store: Store) -> None:
    store.traffic.add(Batch(((exchange(1, record="metadata", record_share=0.5), Bodies()),)))
    assert store.traffic.bodies(["ex-1"]) == {}
    found = store.traffic.exchange("ex-1")
    assert found is not None
    assert (found.record, found.record_share) == ("metadata", 0.5)


def test_what_is_older_is_counted(filled: Store) -> None:
    assert filled.retention.older(bodies=4.0, labels=3.0, metadata=2.0) == Deleted(exchanges=1, bodies=3, labels=2)


def test_the_oldest_labels_go_by_their_own_age(filled: Store) -> None:
    assert (filled.retention.drop_labels(3.0), filled.retention.drop_labels(3.0)) == (2, 0)
