"""Connections: how a store is opened, and the two kinds of transaction it knows.

Reading is a plain transaction. Writing is tried again while another process is in its way. A durable write survives
power loss when it returns, and no other durable write runs beside it; any other may lose its last moments then, never
its order. What differs between databases stands in `sqlite` and `postgresql`.
"""

from __future__ import annotations

import importlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, CursorResult, Dialect, Select, Table
from sqlalchemy.dialects.sqlite import Insert
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, SQLAlchemyError

from tfgrpo.errors import StoreAway, StoreError, UsageError
from tfgrpo.store import migrations

ATTEMPTS = 5

ROWS = 50
"""How many rows one statement inserts."""

BUFFER = 1000
"""How many rows are in memory while rows are read one by one: with fewer, PostgreSQL is asked too often."""

POSTGRESQL: Final = "postgresql+psycopg"

_T = TypeVar("_T")


class Database:
    """One SQLAlchemy engine with the transactions of this package.

    `later`: a server that cannot be reached now is no reason to fail; it is made ready when it first answers.

    Raises:
        StoreAway: The server cannot be reached.
        StoreError: The URL is not understood, the file cannot be opened, or its schema is not ours.
    """

    def __init__(self, url: str, *, migrate: bool, later: bool = False) -> None:
        self._url = parsed(url)
        self._kind = _kind(self.dialect)
        self._engine = self._kind.engine(self._url)
        self._ready = False
        self._closed = False
        self._preparing = threading.Lock()
        self._joined = threading.local()
        try:
            # Whoever began without the server may be the first to reach it.
            self._prepare(migrate=migrate or (later and self.dialect != "sqlite"))
        except StoreAway:
            if not later:
                self._engine.dispose()
                raise
        except StoreError:
            self._engine.dispose()
            raise

    @property
    def dialect(self) -> str:
        """The name of the SQL spoken: `sqlite` or `postgresql`."""
        return str(self._url.get_backend_name())

    def read(self, work: Callable[[Connection], _T]) -> _T:
        """Return what `work` makes of one consistent view of the store."""
        self._make_ready()
        return self._read(work)

    def _read(self, work: Callable[[Connection], _T]) -> _T:
        try:
            with self._reading() as connection:
                return work(connection)
        except SQLAlchemyError as error:
            raise StoreError(f"the store did not answer: {_reason(error)}") from error

    def rows(self, query: Select[Any]) -> Iterator[Any]:
        """Yield the rows of one consistent view of the store as they are read, never all in memory.

        They are the driver's tuples: SQLAlchemy's rows take as long again, which counts where there are a million.
        """
        self._make_ready()
        driver = self._engine.dialect.loaded_dbapi
        try:
            with self._reading() as connection, closing(self._kind.cursor(connection, query)) as cursor:
                while some := cursor.fetchmany(BUFFER):
                    yield from some
        except SQLAlchemyError as error:
            raise StoreError(f"the store did not answer: {_reason(error)}") from error
        except driver.Error as error:
            raise StoreError(f"the store did not answer: {' '.join(str(error).split())}") from error

    def write(self, work: Callable[[Connection], _T], *, durable: bool = False) -> _T:
        """Return what `work` makes in one transaction, tried again while another process holds the lock."""
        if (joined := self._of_thread()) is not None:
            # Who catches an error of it goes on without what it wrote. Trying again is for the whole transaction.
            with joined.begin_nested():
                return work(joined)
        self._make_ready()
        return self._write(work, durable=durable)

    def together(self, work: Callable[[], _T]) -> _T:
        """Return what `work` makes. All that its thread reads and writes meanwhile is one durable transaction.

        As in `write` it may be called again, so it leaves no trace but in the store.
        """

        def joined(connection: Connection) -> _T:
            outer, self._joined.connection = self._of_thread(), connection
            try:
                return work()
            finally:
                self._joined.connection = outer

        return self.write(joined, durable=True)

    def _write(self, work: Callable[[Connection], _T], *, durable: bool) -> _T:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._writing(durable=durable) as connection:
                    return work(connection)
            except DataError as error:
                # Whoever tries again until the store answers would do so for ever.
                raise UsageError(f"the store cannot hold a value: {_reason(error)}") from error
            except DBAPIError as error:
                if self._kind.for_good(error):
                    self._engine.pool.dispose()
                if attempt == ATTEMPTS or not self._kind.passing(error):
                    raise StoreError(f"the store could not be written: {_reason(error)}") from error
                # Other writers wait as well; uneven pauses keep them from meeting again and again.
                time.sleep(random.uniform(0, 0.02 * 2**attempt))  # noqa: S311 - not a secret
            except SQLAlchemyError as error:
                raise StoreError(f"the store could not be written: {_reason(error)}") from error
        raise AssertionError  # the last attempt returns or raises

    def backup(self, file: Path) -> None:
        """Write a whole copy to a new file, as the database at hand does it."""
        self._kind.backup(self._url, file)

    def close(self) -> None:
        """Close every connection; one that is in use when its user is done."""
        self._closed = True
        self._engine.pool.dispose()

    def _of_thread(self) -> Connection | None:
        """Return the connection of the transaction that this thread is in by `together`."""
        return getattr(self._joined, "connection", None)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if (joined := self._of_thread()) is not None:
            yield joined
            return
        with self._connected() as connection, connection.begin():
            yield connection

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        finally:
            if self._closed:
                # It went back into a pool that nobody empties any more.
                self._engine.pool.dispose()

    @contextmanager
    def _writing(self, *, durable: bool) -> Iterator[Connection]:
        with self._connected() as plain:
            connection = plain.execution_options(tfgrpo_write=True)
            self._kind.before_writing(connection, durable=durable)
            with connection.begin():
                self._kind.begun_writing(connection, durable=durable)
                yield connection

    def _make_ready(self) -> None:
        """Prepare a server that could not be reached before. One asks at a time: each attempt may take seconds."""
        if self._ready:
            return
        if not self._preparing.acquire(blocking=False):
            raise StoreAway(f"the store {self._url.database} could not be reached yet")
        try:
            if not self._ready:
                self._prepare(migrate=True)
        finally:
            self._preparing.release()

    def _prepare(self, *, migrate: bool) -> None:
        try:
            self._kind.prepare(self._engine, self._url, migrate=migrate)
            if migrate:
                self._write(migrations.migrate, durable=True)
            self._read(migrations.check)
            self._ready = True
        except SQLAlchemyError as error:
            raise StoreError(f"the store {self._url.database} cannot be opened: {_reason(error)}") from error
        except StoreError as error:
            if migrate:
                raise type(error)(f"the store {self._url.database}: {error}") from error
            raise


def insert(connection: Connection, table: Table) -> Insert:
    """Return an INSERT into the table that takes `on_conflict_...`, which both databases know in one form."""
    made: Insert = _kind(connection.dialect.name).Insert(table)
    return made


def insert_new(
    connection: Connection,
    table: Table,
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    *,
    told: str | None = None,
) -> list[Any]:
    """Insert the rows that are not there yet, many by one statement; return their values in the column `told`.

    One statement for each row would hand the interpreter to and fro between the writer's thread and the live path, at
    a cost to the live path that is larger than that of the writing.
    """
    ending = "ON CONFLICT DO NOTHING" + (f" RETURNING {told}" if told else "")
    found: list[Any] = []
    for done in _inserted(connection, table, columns, rows, ending):
        if told is not None and done.cursor is not None:
            # The driver's tuples, as in `Database.rows`.
            found += [row[0] for row in done.cursor.fetchall()]
            done.close()
    return found


def add_up(
    connection: Connection, table: Table, key: Sequence[str], sums: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert the rows, or where one of that key is there add to its sums. The columns are those of `key`, then `sums`.

    No key stands there twice. Two that add to the same rows must bring them in one order, or they wait in a circle.
    """
    added = ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in sums)
    marks = ", ".join(f'"{name}"' for name in key)
    for _ in _inserted(connection, table, [*key, *sums], rows, f"ON CONFLICT ({marks}) DO UPDATE SET {added}"):
        pass


def _inserted(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], ending: str
) -> Iterator[CursorResult[Any]]:
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        values = tuple(chain.from_iterable(some))
        yield connection.exec_driver_sql(_insert(table, tuple(columns), len(some), ending, connection.dialect), values)


@lru_cache(maxsize=16 * ROWS)
def _insert(table: Table, columns: tuple[str, ...], rows: int, ending: str, dialect: Dialect) -> str:
    quote = dialect.identifier_preparer.quote
    mark = "?" if dialect.paramstyle == "qmark" else "%s"
    names = ", ".join(quote(name) for name in columns)
    row = f"({', '.join([mark] * len(columns))})"
    return f"INSERT INTO {quote(table.name)} ({names}) VALUES {', '.join([row] * rows)} {ending}"  # noqa: S608 - names of our schema


def parsed(url: str) -> URL:
    """Return the address of a store; StoreError when it is none, which never shows it: it may hold a password."""
    try:
        found = make_url(url)
    except ArgumentError as error:
        raise StoreError("store.url is not a database URL; an example is sqlite:///data/tfgrpo.db") from error
    name = "postgresql" if found.get_backend_name() == "postgres" else found.get_backend_name()
    if name not in ("sqlite", "postgresql"):
        raise StoreError(
            f"store.url names {name!r}; stored is in sqlite:///PATH or {POSTGRESQL}://USER:PASSWORD@HOST/NAME"
        )
    if name == "postgresql":
        found = found.set(drivername=POSTGRESQL)
    if not found.database or found.database == ":memory:":
        example = "sqlite:///data/tfgrpo.db" if name == "sqlite" else f"{POSTGRESQL}://USER:PASSWORD@HOST/NAME"
        raise StoreError(f"store.url names no database; an example is {example}")
    return found


def _kind(dialect: str) -> ModuleType:
    """Return what is particular to a database. PostgreSQL's driver takes 0.1 s to load: only where it is used."""
    return importlib.import_module(f"tfgrpo.store.{dialect}")


def _reason(error: SQLAlchemyError) -> str:
    """Return the driver's own words on one line, without the statement and its values."""
    original = getattr(error, "orig", None)
    return " ".join(str(original or type(error).__name__).split())
