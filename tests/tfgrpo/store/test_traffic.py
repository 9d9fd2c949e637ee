from __future__ import annotations

from tests.tfgrpo.store.examples import assignment, exchange
from tfgrpo.store import Batch, Store
from tfgrpo.store.learnable import TRUNCATED, UNREADABLE, WHOLE
from tfgrpo.types import Bodies, Link


def test_an_exchange_comes_back_as_it_was_put(store: Store) -> None:
    put = exchange(1, status=None, first_byte_at=1.2, prompt_tokens=7, choices=2, retry=True, note="n")
    store.traffic.add(Batch(exchanges=((put, Bodies()),)))
    assert store.traffic.exchange("ex-1") == put


def test_raw_bodies_come_back_byte_for_byte(store: Store) -> None:
    kept = Bodies(bytes(range(256)), b"\xff\x00" * 9, "gzip", "br", "application/json")
    store.traffic.add(Batch(exchanges=((exchange(), kept),)))
    assert store.traffic.bodies(["ex-1", "unknown"]) == {"ex-1": kept}


def test_adding_a_row_twice_leaves_the_first(store: Store) -> None:
    for path in ("/first", "/second"):
        store.traffic.add(Batch(exchanges=((exchange(path=path), Bodies()),), assignments=(assignment(),)))
    found = store.traffic.exchange("ex-1")
    assert found is not None
    assert found.path == "/first"


def test_links_are_found_oldest_first_with_their_assignment(store: Store) -> None:
    links = tuple(Link("k", "default", f"t-{number}", f"ex-{number}", float(9 - number)) for number in (1, 2))
    store.traffic.add(Batch(assignments=(assignment(1), assignment(2)), links=links))
    found = store.traffic.find_links(["k", "other"])
    assert [one.assignment.trajectory for one in found] == ["t-2", "t-1"]


def test_a_parent_that_was_continued_is_taken(store: Store) -> None:
    store.traffic.add(Batch(assignments=(assignment(),), links=(Link("k", "default", "t-1", "ex-1", 1.0),)))
    store.traffic.add(Batch(taken=(("ex-1", "ex-2"),)))
    assert [one.taken for one in store.traffic.find_links(["k"])] == [True]


def test_a_link_whose_trajectory_is_of_another_app_is_not_found(store: Store) -> None:
    store.traffic.add(Batch(assignments=(assignment(app="other"),), links=(Link("k", "default", "t-1", "ex-1", 1.0),)))
    assert store.traffic.find_links(["k"]) == []


def test_an_id_leads_to_the_upstream_that_gave_it_last_to_this_app(store: Store) -> None:
    given = [(2, "new", "default"), (1, "old", "default"), (3, "others", "desk")]
    rows = [exchange(number, completion_id="r", upstream=name, app=app) for number, name, app in given]
    store.traffic.add(Batch(exchanges=tuple((one, Bodies()) for one in (*rows, exchange(4)))))
    assert store.traffic.upstreams_of("default", ["r", "c-4", "unknown"]) == {"r": "new", "c-4": "openai"}
    assert store.traffic.upstreams_of("desk", ["c-4"]) == {}


def test_a_page_holds_the_newest_and_is_turned_by_time(store: Store) -> None:
    store.traffic.add(Batch(exchanges=tuple((exchange(number), Bodies()) for number in range(5))))
    assert [one.id for one in store.traffic.page(limit=2)] == ["ex-4", "ex-3"]


def test_attempts_leave_out_what_cannot_be_learned_from(store: Store) -> None:
    rows = (
        exchange(1),
        exchange(2, outcome="aborted"),
        exchange(3, truncated=True),
        exchange(4, dialect=None),
        exchange(5, set=None),
    )
    store.traffic.add(Batch(exchanges=tuple((row, Bodies()) for row in rows)))
    assert [one.trajectory for one in store.learnable.attempts()] == ["t-1", "t-5"]
    assert [one.trajectory for one in store.learnable.attempts(set_name="math")] == ["t-1"]
    assert [one.trajectory for one in store.learnable.attempts(unnamed=True)] == ["t-5"]


def test_a_trajectory_that_changed_its_version_is_mixed(store: Store) -> None:
    rows = (exchange(1, version=1), exchange(2, version=2, trajectory="t-1"))
    store.traffic.add(Batch(exchanges=tuple((row, Bodies()) for row in rows)))
    assert [one.mixed for one in store.learnable.attempts()] == [True]


def test_outlines_say_what_can_be_learned_from(store: Store) -> None:
    rows = (
        exchange(1),
        exchange(2, outcome="aborted"),
        exchange(3, truncated=True),
        exchange(4, dialect=None),
        exchange(5, set=None),
    )
    store.traffic.add(Batch(exchanges=tuple((row, Bodies()) for row in rows)))
    uses = {row[2]: row[-1] for row in store.learnable.outlines()}
    assert uses == {"t-1": WHOLE, "t-2": UNREADABLE, "t-3": TRUNCATED, "t-4": UNREADABLE, "t-5": WHOLE}
    assert [row[2] for row in store.learnable.outlines(unnamed=True)] == ["t-5"]


def test_what_an_attacker_writes_into_an_id_is_a_value_and_no_statement(store: Store) -> None:
    nasty = "x'; DROP TABLE exchanges; --\""
    store.traffic.add(Batch(exchanges=((exchange(1, id=nasty, trajectory=nasty), Bodies()),)))
    found = store.traffic.exchange(nasty)
    assert found is not None
    assert found.trajectory == nasty
