from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tfgrpo.store import Frozen, Store
from tfgrpo.store.frozen import AT_ONCE


def row(number: int, **changes: Any) -> Frozen:
    return Frozen(
        **{
            "kind": "settled",
            "app": "default",
            "trajectory": f"t-{number}",
            "arm": "live",
            "probability": 0.9,
            "at": float(number),
            **changes,
        }
    )


def test_rows_come_back_in_the_order_they_were_kept(store: Store) -> None:
    rows = [
        row(2, reward=0.5, fresh=True, tokens=3, seconds=1.5, finish="stop"),
        row(1, kind="ended", failed=True),
        row(1, kind="labelled", reward=1.0),
    ]
    store.frozen.add("math", 1, rows)
    assert store.frozen.since("math", 1, 0) == (rows, 3)
    assert store.frozen.since("math", 1, 1) == (rows[1:], 3)
    assert store.frozen.since("math", 1, 3) == ([], 3)


def test_the_first_fact_of_a_kind_stands(store: Store) -> None:
    store.frozen.add("math", 1, [row(1, reward=0.0), row(1, reward=1.0)])
    store.frozen.add("math", 1, [row(1, reward=1.0), row(2)])
    rows, _ = store.frozen.since("math", 1, 0)
    assert [(one.trajectory, one.reward) for one in rows] == [("t-1", 0.0), ("t-2", None)]


def test_experiments_are_kept_apart(store: Store) -> None:
    store.frozen.add("math", 1, [row(1)])
    store.frozen.add("math", 2, [row(1)])
    store.frozen.add("law", 1, [row(1)])
    assert [len(store.frozen.since(*which, 0)[0]) for which in (("math", 1), ("math", 2), ("law", 1))] == [1, 1, 1]


def test_how_far_each_kind_has_come_is_known(store: Store) -> None:
    assert store.frozen.reached("math", 1) == {}
    store.frozen.add("math", 1, [row(4), row(2), row(9, kind="ended")])
    assert store.frozen.reached("math", 1) == {"settled": 4.0, "ended": 9.0}


def test_a_long_line_is_read_in_parts(store: Store) -> None:
    store.frozen.add("math", 1, [row(number) for number in range(AT_ONCE + 3)])
    first, last = store.frozen.since("math", 1, 0)
    rest, end = store.frozen.since("math", 1, last)
    assert (len(first), len(rest)) == (AT_ONCE, 3)
    assert store.frozen.since("math", 1, end) == ([], end)


def test_writers_at_once_lose_nothing(store: Store, url: str) -> None:
    def write(worker: int) -> None:
        own = Store.open(url)
        for number in range(10):
            own.frozen.add("math", 1, [row(number, kind="labelled"), row(100 * worker + number)])
        own.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, (1, 2, 3, 4)))
    rows, _ = store.frozen.since("math", 1, 0)
    assert sorted(one.trajectory or "" for one in rows if one.kind == "labelled") == [f"t-{n}" for n in range(10)]
    assert len([one for one in rows if one.kind == "settled"]) == 40
