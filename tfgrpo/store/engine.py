"""Connections: how a store is opened, and the two kinds of transaction it knows.

Reading is a plain transaction. Writing is `BEGIN IMMEDIATE` on SQLite, which takes the one write lock at once
instead of failing half-way, and is tried again while another process holds it. A durable write survives power loss
when it returns; any other may lose its last moments then, never its order.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Engine, Table, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from tfgrpo.errors import StoreError
from tfgrpo.store import migrations

BUSY_SECONDS = 5.0
"""How long one statement waits for another process's write lock."""

ATTEMPTS = 5

ROWS = 50
"""How many rows one statement inserts."""

_T = TypeVar("_T")


class Database:
    """One SQLAlchemy engine with the transactions of this package.

    Raises:
        StoreError: The URL is not understood, the file cannot be opened, or its schema is not ours.
    """

    def __init__(self, url: str, *, migrate: bool) -> None:
        self._url = parsed(url)
        if migrate:
            _make_folder(self._url)
        elif self._url.database and not Path(self._url.database).exists():
            raise StoreError(f"there is no store at {self._url.database}: start tfgrpo-proxy once, it makes one")
        self._engine = _engine(self._url)
        try:
            self._prepare(migrate=migrate)
        except StoreError:
            self._engine.dispose()
            raise

    @property
    def dialect(self) -> str:
        """The name of the SQL spoken: `sqlite`."""
        return self._engine.dialect.name

    def read(self, work: Callable[[Connection], _T]) -> _T:
        """Return what `work` makes of one consistent view of the store."""
        try:
            with self._engine.connect() as connection, connection.begin():
                return work(connection)
        except SQLAlchemyError as error:
            raise StoreError(f"the store did not answer: {_reason(error)}") from error

    def write(self, work: Callable[[Connection], _T], *, durable: bool = False) -> _T:
        """Return what `work` makes in one transaction, tried again while another process holds the lock."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._writing(durable=durable) as connection:
                    return work(connection)
            except OperationalError as error:
                if attempt == ATTEMPTS or "locked" not in str(error.orig):
                    raise StoreError(f"the store could not be written: {_reason(error)}") from error
                # Other writers wait as well; uneven pauses keep them from meeting again and again.
                time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 - not a secret
            except SQLAlchemyError as error:
                raise StoreError(f"the store could not be written: {_reason(error)}") from error
        raise AssertionError  # the last attempt returns or raises

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextmanager
    def _writing(self, *, durable: bool) -> Iterator[Connection]:
        with self._engine.connect() as plain:
            connection = plain.execution_options(tfgrpo_write=True)
            # A pragma inside a transaction has no effect, so it goes to the driver before SQLAlchemy begins one.
            cursor = connection.connection.cursor()
            cursor.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            cursor.close()
            with connection.begin():
                yield connection

    def _prepare(self, *, migrate: bool) -> None:
        try:
            if migrate:
                self._set_wal()
                self.write(migrations.migrate, durable=True)
            self.read(migrations.check)
        except SQLAlchemyError as error:
            raise StoreError(f"the store {self._url.database} cannot be opened: {_reason(error)}") from error
        except StoreError as error:
            raise StoreError(f"the store {self._url.database}: {error}") from error

    def _set_wal(self) -> None:
        try:
            with self._engine.connect() as connection:
                # To the driver, outside of a transaction: there this pragma would change nothing.
                cursor = connection.connection.cursor()
                cursor.execute("PRAGMA journal_mode=WAL")
                mode = str(cursor.fetchall()[0][0])
        except sqlite3.Error as error:
            raise StoreError(f"cannot be opened: {error}") from error
        if mode != "wal":
            raise StoreError(f"cannot use write-ahead logging there (journal mode {mode}); choose a local disk")


def insert_new(connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert the rows that are not there yet, many by one statement.

    One statement for each row would hand the interpreter to and fro between the writer's thread and the live path, at
    a cost to the live path that is larger than that of the writing.
    """
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        values = tuple(chain.from_iterable(some))
        connection.exec_driver_sql(_insert(table, tuple(columns), len(some), connection.dialect), values)


@lru_cache(maxsize=16 * ROWS)
def _insert(table: Table, columns: tuple[str, ...], rows: int, dialect: Dialect) -> str:
    quote = dialect.identifier_preparer.quote
    mark = "?" if dialect.paramstyle == "qmark" else "%s"
    names = ", ".join(quote(name) for name in columns)
    row = f"({', '.join([mark] * len(columns))})"
    return f"INSERT INTO {quote(table.name)} ({names}) VALUES {', '.join([row] * rows)} ON CONFLICT DO NOTHING"  # noqa: S608 - names of our schema


def parsed(url: str) -> URL:
    """Return the address of a store; StoreError when it is none that is stored in."""
    try:
        found = make_url(url)
    except ArgumentError as error:
        raise StoreError("store.url is not a database URL; an example is sqlite:///data/tfgrpo.db") from error
    if found.get_backend_name() != "sqlite":
        raise StoreError(f"store.url names {found.get_backend_name()!r}; this release stores in sqlite:///PATH only")
    if not found.database or found.database == ":memory:":
        raise StoreError("store.url names no file; an example is sqlite:///data/tfgrpo.db")
    return found


def _make_folder(url: URL) -> None:
    folder = Path(url.database or "").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the store {url.database} cannot be opened: folder {folder}: {error.strerror}") from error


def _engine(url: URL) -> Engine:
    engine = create_engine(
        url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, pool_size=8, max_overflow=-1
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself; we say when and how
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("PRAGMA temp_store=MEMORY")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tfgrpo_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _reason(error: SQLAlchemyError) -> str:
    """Return the driver's own words on one line, without the statement and its values."""
    original = getattr(error, "orig", None)
    return " ".join(str(original or type(error).__name__).split())
