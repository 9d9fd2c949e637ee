from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from tfgrpo import library
from tfgrpo.errors import StoreError, UsageError
from tfgrpo.store import Fault, Store, chain
from tfgrpo.store.migrations import STEPS, TYPES, take


@pytest.fixture
def acted(store: Store) -> Store:
    return act(store)


def act(store: Store) -> Store:
    """Do something of each kind to a set."""
    for word in ("one", "two"):
        store.sets.add_version("math", library.from_texts([word]), status="by hand")
    store.sets.deploy("math", live=1, shares={"control": 0.1}, reason="be\0gun", actor="a")
    store.reviews.approve("math", 2, reason="read é \U0001f600", actor="ann")
    store.sets.deploy("math", live=2, reason="", actor="a")
    store.sets.rollback("math", reason="worse", actor="a")
    return store


def tampered(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        assert connection.execute(text(statement)).rowcount == 1
    engine.dispose()


def test_everything_done_to_a_set_stands_in_its_history_in_order(acted: Store) -> None:
    told = [(one.number, one.action, one.revision, one.version) for one in reversed(acted.history.of("math"))]
    assert told == [(1, "deploy", 1, None), (2, "approve", None, 2), (3, "deploy", 2, None), (4, "rollback", 3, None)]


def test_a_history_that_nobody_touched_is_as_it_was_written(acted: Store) -> None:
    assert acted.history.fault("math") is None
    assert acted.history.fault("unknown") is None


SAYS: list[Callable[[Store, str], object]] = [
    lambda store, text: store.sets.deploy("math", live=1, reason=text, actor="a"),
    lambda store, text: store.sets.deploy("math", live=1, reason="", actor=text),
    lambda store, text: store.sets.rollback("math", reason=text, actor="a"),
    lambda store, text: store.reviews.approve("math", 1, reason=text, actor="a"),
    lambda store, text: store.reviews.reject("math", 1, reason=text, actor="a"),
    lambda store, text: store.withdrawals.withdraw("app", "default", reason=text, actor="a", deploy=False),
    lambda store, text: store.bypass.switch(on=True, reason=text, actor="a"),
]


@pytest.mark.parametrize("say", SAYS)
def test_what_is_kept_for_good_is_of_bounded_length(acted: Store, say: Callable[[Store, str], object]) -> None:
    before = (acted.history.of("math"), acted.bypass.history(), acted.withdrawals.all())
    with pytest.raises(UsageError, match="2,001 characters; it may have 2,000") as refused:
        say(acted, "x" * 2001)
    assert refused.value.field in {"reason", "by"}
    assert (acted.history.of("math"), acted.bypass.history(), acted.withdrawals.all()) == before


def test_a_reason_of_the_length_allowed_is_kept_whole(acted: Store) -> None:
    acted.sets.deploy("math", live=1, reason="x" * 2000, actor="a")
    assert acted.history.of("math")[0].reason == "x" * 2000
    assert acted.history.fault("math") is None


@pytest.mark.parametrize(
    ("statement", "number", "reason"),
    [
        ("UPDATE history SET reason = 'other' WHERE number = 2", 2, "changed after it was written"),
        ("UPDATE history SET live = 2 WHERE number = 1", 1, "changed after it was written"),
        ("DELETE FROM history WHERE number = 2", 2, "missing"),
        ("DELETE FROM history WHERE number = 1", 1, "missing"),
        ("UPDATE history SET previous = '' WHERE number = 3", 3, "does not follow"),
        ("UPDATE versions SET library = '{}' WHERE version = 2", 2, "library of version 2"),
        ("DELETE FROM versions WHERE version = 2", 2, "library of version 2"),
        ("UPDATE history SET contents = '{' WHERE number = 3", 3, "changed after it was written"),
        ("UPDATE history SET contents = 'null' WHERE number = 1", 1, "changed after it was written"),
        ("UPDATE history SET entries = 'zz', shares = 'zz' WHERE number = 3", 3, "changed after it was written"),
    ],
)
def test_the_first_row_that_is_not_as_it_was_written_is_named(
    acted: Store, url: str, statement: str, number: int, reason: str
) -> None:
    tampered(url, statement)
    fault = acted.history.fault("math")
    assert isinstance(fault, Fault)
    assert (fault.set, fault.number) == ("math", number)
    assert reason in fault.reason


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("UPDATE history SET reason = x'ff00' WHERE number = 2", 2),
        ("UPDATE history SET contents = x'ff00' WHERE number = 3", 3),
        ("UPDATE versions SET library = x'ff00' WHERE version = 1", 1),
    ],
)
def test_bytes_in_a_text_are_a_fault_and_no_defect(sqlite_url: str, statement: str, number: int) -> None:
    store = act(Store.open(sqlite_url, migrate=True))
    tampered(sqlite_url, statement)
    fault = store.history.fault("math")
    store.close()
    assert fault is not None
    assert fault.number == number


def test_a_row_that_cannot_be_read_is_named_with_what_to_run(acted: Store, url: str) -> None:
    tampered(url, "UPDATE history SET contents = '{' WHERE number = 3")
    with pytest.raises(StoreError, match=r"row 3 of the history of math .* --verify"):
        acted.history.of("math")
    assert acted.history.newest("math")[0] == 4


def test_a_row_that_was_hashed_anew_breaks_the_row_behind_it(acted: Store, url: str) -> None:
    tampered(url, "UPDATE history SET hash = 'made up', reason = 'x' WHERE number = 3")
    fault = acted.history.fault("math")
    assert fault is not None
    assert fault.number == 3


def test_writers_at_once_make_one_chain(acted: Store, url: str) -> None:
    def write(number: int) -> None:
        own = Store.open(url)
        own.sets.deploy("math", live=1 + number % 2, reason=str(number), actor="a")
        own.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(12)))
    assert len(acted.history.of("math")) == 16
    assert acted.history.fault("math") is None


def test_the_same_rows_have_the_same_hashes_on_both_databases() -> None:
    row = {"set": "s", "action": "deploy", "reason": "é", "actor": "a", "created_at": 3, "entries": "[]"}
    made = chain.sealed({**row, "contents": "{}", "live": 1}, number=1, previous="")
    assert made["hash"] == "d5be16a5ac2af6e7eb1ca5392744c218e15fc0bbaac9cefffed4c9d0eecbc6f6"


def test_deployments_from_before_are_chained_by_the_migration(store: Store, url: str) -> None:
    for word in ("one", "two"):
        store.sets.add_version("math", library.from_texts([word]), status="by hand")
    engine = create_engine(url)
    chained = next(step for step in STEPS if "DROP TABLE deployments" in step)
    noted = next(step for step in STEPS if any("CREATE TABLE commits" in str(one) for one in step))
    create = next(one for one in STEPS[0] if isinstance(one, str) and "CREATE TABLE deployments" in one)
    types = TYPES[engine.dialect.name]
    row = """INSERT INTO deployments VALUES ('math', :r, :live, NULL, '{"control": 0.1}', :action, 'why', 'me', 1.5,
        :effective, :undone)"""
    with engine.begin() as connection:
        for table in ("history", "commits"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text(create.format(**types)))
        connection.execute(text(row), {"r": 1, "live": 1, "action": "deploy", "effective": 1, "undone": None})
        connection.execute(text(row), {"r": 2, "live": 2, "action": "deploy", "effective": 2, "undone": None})
        connection.execute(text(row), {"r": 3, "live": 1, "action": "rollback", "effective": 1, "undone": 2})
        for statement in (*chained, *noted):
            take(connection, statement)
    engine.dispose()
    assert [(one.revision, one.live, one.action) for one in store.sets.history("math")] == [
        (3, 1, "rollback"),
        (2, 2, "deploy"),
        (1, 1, "deploy"),
    ]
    assert store.history.fault("math") is None
    store.sets.deploy("math", live=2, reason="", actor="a")
    assert store.history.fault("math") is None
