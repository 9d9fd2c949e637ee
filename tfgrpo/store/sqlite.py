"""What SQLite needs of us: a file and its folder, write-ahead logging, one writer at a time for whom others wait."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Select, create_engine, event
from sqlalchemy.dialects.sqlite import Insert as Insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from tfgrpo.errors import StoreError, UsageError

BUSY_SECONDS = 5.0
"""How long one statement waits for another process's write lock."""

LOG_PAGES = 4000
"""Pages of 4 KiB in the log before they go to the file: one that changes again and again until then goes once."""


def engine(url: URL) -> Engine:
    """Return an engine whose transactions begin when we say so."""
    made = create_engine(
        url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, pool_size=8, max_overflow=-1
    )

    @event.listens_for(made, "connect")
    def _connected(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself; we say when and how
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")

    @event.listens_for(made, "begin")
    def _begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tfgrpo_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return made


def prepare(made: Engine, url: URL, *, migrate: bool) -> None:
    """Make the folder and set write-ahead logging, or see that there is a file.

    Raises:
        StoreError: there is none, or it cannot be used.
    """
    if not migrate:
        if not Path(url.database or "").exists():
            raise StoreError(f"there is no store at {url.database}: start tfgrpo-proxy once, it makes one")
        return
    folder = Path(url.database or "").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the store {url.database} cannot be opened: folder {folder}: {error.strerror}") from error
    _set_wal(made)


def before_writing(connection: Connection, *, durable: bool) -> None:
    """Say, before the transaction begins, how safe its end must be: a pragma inside of it has no effect."""
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
    cursor.close()


def begun_writing(connection: Connection, *, durable: bool) -> None:
    """Do nothing: `BEGIN IMMEDIATE` took the lock."""


def cursor(connection: Connection, query: Select[Any]) -> Any:
    """Return the driver's cursor over what a query finds. It reads on as it is asked."""
    return connection.execute(query).cursor


def backup(url: URL, file: Path) -> None:
    """Copy all pages to a new file by SQLite's own means, which begin again where others write in between.

    Raises:
        UsageError: The file is there already.
        StoreError: The copy could not be made; none is left.
    """
    try:
        file.touch(mode=0o600, exist_ok=False)
    except FileExistsError as error:
        raise UsageError(f"{file} is there already; name another file", field="file") from error
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from error
    try:
        with (
            closing(sqlite3.connect(url.database or "", timeout=BUSY_SECONDS)) as source,
            closing(sqlite3.connect(file)) as copy,
        ):
            source.backup(copy)
    except sqlite3.Error as error:
        file.unlink()
        raise StoreError(f"the copy could not be made: {error}") from error


def passing(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed when it is tried again."""
    return "locked" in str(error.orig)


def for_good(error: DBAPIError) -> bool:
    """Whether the connections fail so until they are opened anew: what was opened read-only stays it, and one such
    keeps the log's shared memory read-only for all others of its process.
    """
    return "readonly" in str(error.orig)


def _set_wal(made: Engine) -> None:
    try:
        with made.connect() as connection:
            # To the driver, outside of a transaction: there this pragma would change nothing.
            cursor = connection.connection.cursor()
            cursor.execute("PRAGMA journal_mode=WAL")
            mode = str(cursor.fetchall()[0][0])
    except sqlite3.Error as error:
        raise StoreError(f"cannot be opened: {error}") from error
    if mode != "wal":
        raise StoreError(f"cannot use write-ahead logging there (journal mode {mode}); choose a local disk")
