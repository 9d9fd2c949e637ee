from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, inspect, text, update
from sqlalchemy.exc import DBAPIError

from tests.tfgrpo.store.examples import assignment, exchange
from tfgrpo import trajectories
from tfgrpo.errors import NotFound, StoreError, UsageError
from tfgrpo.store import Batch, Store, schema
from tfgrpo.store.engine import Database
from tfgrpo.store.migrations import STEPS, take
from tfgrpo.types import Bodies, Choice, Library, Message, Request, Response


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def test_a_store_is_made_with_its_folder_and_in_wal_mode(sqlite_url: str) -> None:
    Store.open(sqlite_url, migrate=True).close()
    with sqlite3.connect(_path(sqlite_url)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.usefixtures("store")
def test_the_migrations_make_the_tables_that_the_queries_name(url: str) -> None:
    engine = create_engine(url)
    found = inspect(engine)
    assert set(found.get_table_names()) == set(schema.metadata.tables)
    for name, table in schema.metadata.tables.items():
        keys = [column.name for column in table.primary_key]
        assert found.get_pk_constraint(name)["constrained_columns"] == keys
        columns = {(c["name"], c["nullable"]) for c in found.get_columns(name) if c["name"] not in keys}
        assert columns == {(c.name, c.nullable) for c in table.columns if not c.primary_key}, name
    engine.dispose()


def test_migrating_twice_is_migrating_once(store: Store, url: str) -> None:
    before = store.secret()
    again = Store.open(url, migrate=True)
    assert again.secret() == before
    again.close()


def test_links_that_an_earlier_version_wrote_are_found(store: Store, url: str) -> None:
    # As schema 3 had them: of an answer's id, and of its chain with the system text and without.
    written = (
        "151427e95db59486419481c2235ea78d",
        "c4b81f434bf8f1b3588c536818313ed5",
        "71e6e88f4bf8f1b3588c536818313ed5",
    )
    store.traffic.add(Batch(assignments=(assignment(1),)))
    row = "INSERT INTO links (key, exchange, app, trajectory, created_at) VALUES (:key, 'ex-1', 'default', 't-1', 1)"
    statements = [statement for step in STEPS for statement in step if "links" in str(statement)]
    later = statements[statements.index("CREATE INDEX links_exchange ON links (exchange)") + 1 :]
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(row), [{"key": key} for key in written])
        for statement in later:
            take(connection, statement)
    engine.dispose()
    within = trajectories.scope("default", "math")
    said = trajectories.chain(within, Request("m", (Message("system", "Be brief."), Message("user", "hi"))))
    answer = Response("a", (Choice(0, Message("assistant", "hello")),), resumable=True)
    for key in trajectories.answer_keys(within, said, answer):
        assert [found.link.exchange for found in store.traffic.find_links([key])] == ["ex-1"]


def test_a_store_that_is_not_there_is_refused_unless_it_may_be_made(url: str) -> None:
    with pytest.raises(StoreError, match="start tfgrpo-proxy once"):
        Store.open(url)


@pytest.mark.usefixtures("store")
def test_a_newer_schema_is_refused(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        newer = update(schema.meta).where(schema.meta.c.key == "schema").values(value=str(len(STEPS) + 1))
        connection.execute(newer)
    engine.dispose()
    with pytest.raises(StoreError, match="start a newer tfgrpo"):
        Store.open(url, migrate=True)


def test_a_file_that_is_no_database_is_refused_and_left_alone(sqlite_url: str) -> None:
    path = _path(sqlite_url)
    path.parent.mkdir()
    path.write_text("these are my notes, and they are long enough to be no empty file" * 50)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="file is not a database"):
        Store.open(sqlite_url, migrate=True)
    assert path.read_bytes() == before


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="unable to open"):
        Store.open(f"sqlite:///{tmp_path}", migrate=True)


@pytest.mark.parametrize(
    "address", ["nonsense", "mysql://host/db", "sqlite://", "sqlite:///:memory:", "postgresql://host"]
)
def test_a_url_that_cannot_be_used_is_refused_naming_the_setting(address: str) -> None:
    with pytest.raises(StoreError, match=r"store\.url"):
        Store.open(address, migrate=True)


def test_many_writers_at_once_all_get_through(store: Store, url: str) -> None:
    def write(number: int) -> bool:
        own = Store.open(url)
        try:
            return own.runs.acquire(f"lease-{number}", "me", 60)
        finally:
            own.close()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write, range(50)))
    assert [store.runs.holder(f"lease-{number}") for number in range(50)] == ["me"] * 50


def test_replicas_that_start_at_once_migrate_once(url: str) -> None:
    def start(_: int) -> bytes:
        own = Store.open(url, migrate=True)
        try:
            return own.secret()
        finally:
            own.close()

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(start, range(6)))) == 1


def test_a_server_that_is_not_there_is_an_error_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the store x") as error:
        Store.open(f"postgresql+psycopg://me:hidden-word@/x?host={tmp_path}", migrate=True)
    assert "hidden-word" not in str(error.value)


def test_text_that_a_client_sent_is_kept_whatever_characters_it_has(store: Store) -> None:
    odd = exchange(model="a\0b \N{SNOWMAN}")
    store.traffic.add(Batch(((odd, Bodies(b"\0", b"\0")),)))
    kept = store.traffic.exchange(odd.id)
    assert kept is not None
    assert kept.model in ("a\0b \N{SNOWMAN}", "a\N{REPLACEMENT CHARACTER}b \N{SNOWMAN}")
    assert store.traffic.bodies([odd.id])[odd.id].request == b"\0"


def test_a_connection_in_use_when_the_store_is_closed_is_closed_when_its_user_is_done(url: str) -> None:
    """Else it stays open until it is collected as garbage, which is an error here: a ResourceWarning."""
    Store.open(url, migrate=True).close()
    database = Database(url, migrate=False)
    inside, closed = threading.Event(), threading.Event()

    def hold(connection: Connection) -> Any:
        inside.set()
        assert closed.wait(10)
        return connection.connection.dbapi_connection

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(database.read, hold)
        assert inside.wait(10)
        database.close()
        closed.set()
        assert _is_closed(held.result())


def _is_closed(connection: Any) -> bool:
    if isinstance(connection, sqlite3.Connection):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
        return True
    return bool(connection.closed)


def test_what_is_done_together_is_there_whole_or_not_at_all(store: Store) -> None:
    def half() -> None:
        store.sets.add_version("s", Library(), status="by hand")
        store.sets.deploy("s", live=1, reason="r", actor="a")
        raise UsageError("half way")

    with pytest.raises(UsageError, match="half way"):
        store.together(half)
    assert (store.sets.versions("s"), store.sets.deployment("s")) == ([], None)
    store.together(lambda: store.sets.add_version("s", Library(), status="by hand"))
    assert [one.version for one in store.sets.versions("s")] == [1]


def test_what_is_done_together_sees_itself_and_others_see_it_when_it_is_done(store: Store) -> None:
    def versions() -> list[int]:
        return [one.version for one in store.sets.versions("s")]

    def work() -> tuple[list[int], list[int]]:
        store.sets.add_version("s", Library(), status="by hand")
        return versions(), others.submit(versions).result(30)

    with ThreadPoolExecutor(1) as others:
        assert store.together(work) == ([1], [])
        assert others.submit(versions).result(30) == [1]


def test_an_error_that_is_caught_in_what_is_done_together_takes_back_its_own_write_alone(store: Store) -> None:
    def work() -> None:
        store.together(lambda: store.sets.add_version("s", Library(), status="by hand"))
        with pytest.raises(NotFound):
            store.sets.deploy("s", live=7, reason="r", actor="a")
        store.sets.set_status("s", 1, "helps")

    store.together(work)
    assert [one.status for one in store.sets.versions("s")] == ["helps"]


def test_what_is_done_together_is_tried_again_as_a_whole(url: str) -> None:
    """As after a deadlock: what the first try wrote is not there when the second begins."""
    found = []
    with closing(Store.open(url, migrate=True)) as store:
        passing = {"sqlite": sqlite3.OperationalError("database is locked"), "postgresql": _deadlock()}

        def work() -> None:
            found.append(len(store.sets.versions("s")))
            store.sets.add_version("s", Library(), status="by hand")
            if len(found) == 1:
                raise DBAPIError("", None, passing[url.split(":", maxsplit=1)[0].split("+", maxsplit=1)[0]])

        store.together(work)
        assert (found, len(store.sets.versions("s"))) == ([0, 0], 1)


def _deadlock() -> Exception:
    return psycopg.errors.DeadlockDetected("deadlock detected")
