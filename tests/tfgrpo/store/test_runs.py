from __future__ import annotations

import pytest

from tfgrpo.errors import NotFound
from tfgrpo.store import Store


def test_a_run_is_known_from_its_start_to_its_result(store: Store) -> None:
    store.runs.start("r1", set_name="math", arguments={"seed": 1}, started_at=5.0)
    store.runs.progress("r1", {"calls": 3})
    store.runs.finish("r1", status="finished", result={"version": 1}, used=["t-1", "t-1"])
    run = store.runs.run("r1")
    assert (run.status, run.arguments, run.progress, run.result) == (
        "finished",
        {"seed": 1},
        {"calls": 3},
        {"version": 1},
    )
    assert store.runs.learned_from(["r1"]) == {"t-1"}
    assert store.runs.learned_from(["other"]) == set()


def test_an_unknown_run_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="there is no run 'x'"):
        store.runs.run("x")


def test_runs_are_listed_newest_first(store: Store) -> None:
    for number, name in enumerate(("a", "b")):
        store.runs.start(name, set_name="math", arguments={}, started_at=float(number))
    assert [run.id for run in store.runs.list("math")] == ["b", "a"]


def test_a_lease_has_one_holder_until_it_is_released(store: Store) -> None:
    assert store.runs.acquire("training", "one", 60)
    assert not store.runs.acquire("training", "two", 60)
    assert store.runs.holder("training") == "one"
    store.runs.release("training", "two")
    assert not store.runs.acquire("training", "two", 60)
    store.runs.release("training", "one")
    assert store.runs.acquire("training", "two", 60)


def test_a_lease_that_ran_out_is_free(store: Store) -> None:
    assert store.runs.acquire("training", "one", -1)
    assert store.runs.acquire("training", "two", 60)


def test_a_lease_from_before_the_clock_was_set_back_is_free(store: Store) -> None:
    assert store.runs.acquire("training", "one", 60 + 7200)
    assert store.runs.acquire("training", "two", 60)
    assert not store.runs.acquire("training", "one", 60)


def test_a_holder_renews_its_lease(store: Store) -> None:
    assert store.runs.acquire("training", "one", 60)
    assert store.runs.acquire("training", "one", 60)
