from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo.store import Batch, OtherContent, Store
from tfgrpo.store.engine import BUFFER
from tfgrpo.types import Bodies


def test_a_label_sent_again_is_one_label(store: Store) -> None:
    assert store.labels.add([label()]) == ["stored"]
    assert store.labels.add([replace(label(), created_at=99.0)]) == ["duplicate"]


def test_the_same_id_with_other_content_is_refused_naming_its_place(store: Store) -> None:
    store.labels.add([label(1)])
    with pytest.raises(OtherContent, match="f-1") as caught:
        store.labels.add([label(2), label(1, value=0.0)])
    assert caught.value.index == 1


def test_a_list_with_one_refused_label_stores_none(store: Store) -> None:
    store.labels.add([label(1)])
    with pytest.raises(OtherContent):
        store.labels.add([label(2), label(1, value=0.0)])
    assert store.labels.add([label(2)]) == ["stored"]


def test_the_same_id_of_two_apps_is_two_labels(store: Store) -> None:
    assert store.labels.add([label(), label(app="other")]) == ["stored", "stored"]


def test_a_label_may_come_before_its_exchange(store: Store) -> None:
    store.labels.add([label()])
    assert list(store.labels.placed()) == []
    store.traffic.add(Batch(exchanges=((exchange(), Bodies()),)))
    ((app, placed),) = store.labels.placed(set_name="math")
    assert (app, placed.trajectory, placed.at) == ("default", "t-1", 1.0)


def test_a_label_on_a_trajectory_is_placed_without_an_exchange(store: Store) -> None:
    store.traffic.add(Batch(assignments=(assignment(),)))
    store.labels.add([label(exchange=None, trajectory="t-1")])
    ((_, placed),) = store.labels.placed()
    assert (placed.trajectory, placed.at) == ("t-1", None)


def test_a_label_of_one_app_does_not_speak_of_another_apps_exchange(store: Store) -> None:
    store.traffic.add(Batch(exchanges=((exchange(app="other"), Bodies()),)))
    store.labels.add([label()])
    assert list(store.labels.placed()) == []


def test_labels_are_read_one_by_one_however_many_there_are(store: Store) -> None:
    store.labels.add([label(number, value=number % 2, credential=f"k{number % 3}") for number in range(BUFFER * 2 + 1)])
    rows = list(store.labels.values("exchange", ["reward"], keys=True))
    assert sorted(rows) == sorted(
        ("default", f"ex-{number}", 0, "reward", float(number % 2), f"k{number % 3}")
        for number in range(BUFFER * 2 + 1)
    )


def test_whoever_reads_no_further_leaves_the_store_usable(store: Store) -> None:
    store.labels.add([label(number) for number in range(BUFFER * 2 + 1)])
    assert next(store.labels.values("exchange", ["reward"]))
    assert len(list(store.labels.values("exchange", ["reward"]))) == BUFFER * 2 + 1
