from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo.store import Batch, Store
from tfgrpo.store.browsing import Found, Judged, Place, Wanted
from tfgrpo.types import Bodies

ALWAYS = 60.0


def fill(store: Store, count: int, **more: Callable[[int], Any]) -> None:
    """Record trajectories of one exchange each; `more` says what differs from one to the next."""
    numbers = range(count)
    changes = [{name: of(number) for name, of in more.items()} for number in numbers]
    exchanges = tuple((exchange(number, **changes[number]), Bodies(b"{}", b"{}")) for number in numbers)
    store.traffic.add(Batch(exchanges, tuple(assignment(number, **changes[number]) for number in numbers)))


def all_pages(page: Callable[[Place | None], Found[Any]]) -> list[str]:
    found: list[str] = []
    behind = None
    while True:
        one = page(behind)
        found += [row.trajectory for row in one.rows]
        if one.next is None:
            return found
        behind = one.next


@pytest.mark.parametrize("window", [1, 3, 100])
@pytest.mark.parametrize("seconds", [0.0, ALWAYS])
def test_pages_show_every_row_that_fits_once_however_far_each_looks(store: Store, window: int, seconds: float) -> None:
    # Three begin at each moment: a page, and a window, may end between them.
    fill(store, 30, started_at=lambda n: float(n // 3), model=lambda n: "odd" if n % 2 else "even")
    expected = {f"t-{number}" for number in range(30) if number % 2}
    for name in ("trajectories", "exchanges"):
        look = getattr(store.browsing, name)
        found = all_pages(
            lambda behind, look=look: look(  # type: ignore[misc]
                Wanted(model="odd"), behind=behind, limit=4, seconds=seconds, window=window
            )
        )
        assert len(found) == len(expected), name
        assert set(found) == expected, name


def test_a_page_that_ran_out_of_time_says_how_far_back_it_looked(store: Store) -> None:
    fill(store, 10)
    found = store.browsing.exchanges(Wanted(model="other"), limit=5, seconds=0.0, window=4)
    assert (found.rows, found.next, found.back_to) == ([], (6.0, ""), 6.0)
    whole = store.browsing.trajectories(Wanted(model="other"), limit=5, seconds=ALWAYS, window=4)
    assert (whole.rows, whole.next, whole.back_to) == ([], None, None)


def test_set_and_time_need_no_looking(store: Store) -> None:
    fill(store, 10, set=lambda n: "rare" if n == 1 else "math")
    rare = store.browsing.trajectories(Wanted(set="rare"), limit=5, seconds=0.0, window=1)
    assert ([one.trajectory for one in rare.rows], rare.next) == (["t-1"], None)
    some = store.browsing.exchanges(Wanted(since=3.0, until=6.0), limit=5, seconds=0.0, window=1)
    assert [one.id for one in some.rows] == ["ex-5", "ex-4", "ex-3"]


@pytest.mark.parametrize(
    ("judged", "expected"),
    [("any", ["t-4", "t-2", "t-1"]), ("none", ["t-3", "t-0"]), ("low", ["t-4"]), ("high", ["t-2"])],
)
def test_trajectories_are_found_by_their_labels_and_those_of_their_exchanges(
    store: Store, judged: Judged, expected: list[str]
) -> None:
    fill(store, 5)
    store.labels.add(
        [
            label(1, metric="speed", value=0.0),
            label(2),
            label(4, exchange=None, trajectory="t-4", value=0.2),
            label(5, app="other", exchange=None, trajectory="t-3"),
        ]
    )
    found = store.browsing.trajectories(Wanted(judged=judged), limit=9, seconds=ALWAYS)
    assert [one.trajectory for one in found.rows] == expected


def test_exchanges_are_found_by_labels_of_their_own(store: Store) -> None:
    fill(store, 3)
    store.labels.add([label(1), label(2, exchange=None, trajectory="t-2")])
    for judged, expected in {"any": ["ex-1"], "none": ["ex-2", "ex-0"]}.items():
        found = store.browsing.exchanges(Wanted(judged=judged), limit=9, seconds=ALWAYS)  # type: ignore[arg-type]
        assert [one.id for one in found.rows] == expected


def test_the_newest_exchange_of_each_trajectory_is_found_in_their_order(store: Store) -> None:
    fill(store, 2)
    store.traffic.add(Batch(((exchange(7, trajectory="t-0"), Bodies()),), (assignment(9, app="shop"),)))
    some = [assignment(1), assignment(9, app="shop"), assignment(0)]
    assert [one and one.id for one in store.browsing.newest(some)] == ["ex-1", None, "ex-7"]


def test_one_trajectory_is_found_by_its_app_and_id_and_needs_no_looking(store: Store) -> None:
    fill(store, 6, app=lambda n: "shop" if n % 2 else "desk", trajectory=lambda n: f"t-{n // 4}")
    wanted = Wanted(app="shop", trajectory="t-0")
    assert all_pages(
        lambda behind: store.browsing.exchanges(wanted, behind=behind, limit=1, seconds=0.0, window=1)
    ) == [
        "t-0",
        "t-0",
    ]
    assert store.browsing.exchanges(Wanted("shop", "t-0", set="law"), limit=9, seconds=0.0, window=1).rows == []
    both = store.browsing.exchanges(Wanted(trajectory="t-0"), limit=9, seconds=ALWAYS, window=1)
    assert [one.id for one in both.rows] == ["ex-3", "ex-2", "ex-1", "ex-0"]


def test_names_are_those_with_traffic_in_order(store: Store) -> None:
    fill(store, 7, app=lambda n: f"app-{n % 3}", set=lambda n: None if n % 2 else f"set-{n}")
    assert store.browsing.names("app") == ["app-0", "app-1", "app-2"]
    assert store.browsing.names("set") == ["set-0", "set-2", "set-4", "set-6"]
    assert store.browsing.names("app", most=2) == ["app-0", "app-1"]


def test_bodies_come_in_order_and_few_at_a_time(store: Store) -> None:
    names = [f"ex-{number}" for number in range(5)]
    kept = [Bodies(bytes(1_000 * number), b"{}") for number in range(5)]
    store.traffic.add(Batch(tuple((exchange(number), one) for number, one in enumerate(kept)), ()))
    asked = ["ex-3", "gone", "ex-1", "ex-4"]
    assert [name for name, _ in store.browsing.bodies(asked, packed=1)] == ["ex-3", "ex-1", "ex-4"]
    assert [name for name, _ in store.browsing.bodies(names, largest=2_100)] == ["ex-0", "ex-1", "ex-2"]
    assert dict(store.browsing.bodies(names)) == store.traffic.bodies(names)


def test_labels_on_a_page_are_bounded_and_the_newest(store: Store) -> None:
    fill(store, 1)
    store.labels.add([label(n, exchange=None, trajectory="t-0") for n in range(5)] + [label(9, exchange="ex-0")])
    key = ("default", "t-0")
    found = store.browsing.labels({key: [exchange(0)]}, most=2)[key]
    assert [(one.label.feedback_id, one.at) for one in found] == [("f-9", 0.0), ("f-4", None), ("f-3", None)]
