from __future__ import annotations

from typing import Any

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo.store import START, Batch, Store
from tfgrpo.types import Assignment, Bodies


def drawn(number: int, **changes: Any) -> Assignment:
    return assignment(number, **({"arm": "candidate", "probability": 0.1, "revision": 1} | changes))


def keep(store: Store, *assignments: Assignment, exchanges: tuple[int, ...] = ()) -> None:
    rows = tuple((exchange(number), Bodies()) for number in exchanges)
    store.traffic.add(Batch(exchanges=rows, assignments=assignments))


def test_drawn_trajectories_come_in_the_order_they_began(store: Store) -> None:
    keep(store, drawn(3), drawn(1), drawn(2), drawn(9))
    found = store.experiments.begun("math", (1,), after=START, until=9.0)
    assert [one.trajectory for one in found] == ["t-1", "t-2", "t-3"]


def test_a_look_goes_on_behind_its_place_also_among_equal_times(store: Store) -> None:
    keep(store, *(drawn(number, started_at=5.0) for number in (1, 2, 3)))
    found = store.experiments.begun("math", (1,), after=(5.0, "default", "t-2"), until=6.0)
    assert [one.trajectory for one in found] == ["t-3"]


def test_only_what_was_drawn_in_this_experiment_counts(store: Store) -> None:
    keep(store, drawn(1), drawn(2, probability=None, arm="live"), drawn(3, revision=2), drawn(4, set="law"))
    found = store.experiments.begun("math", (1,), after=START, until=9.0)
    assert [one.trajectory for one in found] == ["t-1"]


def test_labels_of_trajectories_and_of_their_exchanges_are_found(store: Store) -> None:
    keep(store, drawn(1), drawn(2), drawn(3), exchanges=(1, 2, 3))
    store.labels.add([label(1), label(2, exchange=None, trajectory="t-2")])
    found = store.experiments.labels("default", store.traffic.of_trajectories("default", ["t-1", "t-2", "t-3"]))
    assert {name: [one.label.feedback_id for one in placed] for name, placed in found.items()} == {
        "t-1": ["f-1"],
        "t-2": ["f-2"],
    }


def test_labels_come_in_the_order_they_were_given_with_their_trajectory(store: Store) -> None:
    keep(store, drawn(1), drawn(2), drawn(3, probability=None), exchanges=(1, 2, 3))
    store.labels.add(
        [
            label(1, created_at=20.0),
            label(2, exchange=None, trajectory="t-2", created_at=10.0),
            label(3, created_at=15.0),
            label(4, exchange="unknown", created_at=15.0),
        ]
    )
    found, last = store.experiments.labels_since("math", (1,), after=START, until=99.0)
    assert last == (20.0, "default", "f-1")
    assert [(one.trajectory, placed.label.feedback_id) for one, placed in found] == [("t-2", "f-2"), ("t-1", "f-1")]
    later, _ = store.experiments.labels_since("math", (1,), after=(10.0, "default", "f-2"), until=99.0)
    assert [placed.label.feedback_id for _, placed in later] == ["f-1"]
    assert store.experiments.labels_since("math", (1,), after=last, until=99.0) == ([], None)


def test_candidates_without_a_label_await_one(store: Store) -> None:
    keep(store, *(drawn(number) for number in (1, 2, 3, 4)), drawn(5, arm="live"), exchanges=(1, 2, 3, 4, 5))
    store.labels.add([label(1), label(2, exchange=None, trajectory="t-2")])
    assert store.experiments.awaiting("math", (1,), since=0.0, most=50) == 2
    assert store.experiments.awaiting("math", (1,), since=3.5, most=50) == 1
    assert store.experiments.awaiting("math", (1,), since=0.0, most=1) == 1


def test_the_groups_that_a_run_learned_from_are_known(store: Store) -> None:
    keep(store, drawn(1, group="seen"), drawn(2, group="other"))
    store.runs.start("run-1", set_name="math", arguments={}, started_at=0.0)
    store.runs.finish("run-1", status="finished", result={}, used=["t-1"])
    assert store.experiments.trained_groups("math", ["run-1"]) == {"seen"}
