"""What PostgreSQL needs of us: durable writes one after the other, others at once, and text without NUL.

What is read and then written (revisions, version numbers, migrations) stands in durable writes. An advisory lock lets
one of them in at a time, over all replicas, as SQLite's write lock does; under READ COMMITTED it then sees what the
one before it wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.types.string import StrDumper, StrDumperUnknown, StrDumperVarchar
from sqlalchemy import Connection, Engine, Select, create_engine, event
from sqlalchemy.dialects.postgresql import Insert as Insert
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from tfgrpo.errors import StoreAway, StoreError, UsageError

CONNECT_SECONDS: Final = 5
"""How long one attempt to connect may take."""

STATEMENT_SECONDS: Final = 60
"""A statement that takes longer is given up: a live proxy must not wait for it forever."""

_LOCK: Final = 0x7466_6772_706F
"""The advisory lock of this project: any number that nobody else uses."""

_PASSING: Final = frozenset({"40001", "40P01"})
"""serialization_failure and deadlock_detected."""


_REFUSED: Final = (
    "authentication failed",
    "does not exist",
    "pg_hba.conf",
    "no password supplied",
    "permission denied",
)
"""In what a server says, in English, when waiting will not help. libpq hands on no code of a connection that failed."""


def engine(url: URL) -> Engine:
    """Return an engine. Each connection is asked whether it is alive before it is used."""
    options = f"-c statement_timeout={STATEMENT_SECONDS * 1000} -c timezone=UTC"
    arguments = {"connect_timeout": CONNECT_SECONDS, "application_name": "tfgrpo", "options": options}
    made = create_engine(url, connect_args=arguments, pool_size=8, max_overflow=-1, pool_pre_ping=True)

    @event.listens_for(made, "connect")
    def _connected(connection: psycopg.Connection[Any], _: ConnectionPoolEntry) -> None:
        for dumper in (_Text, _Varchar, _Unknown):
            connection.adapters.register_dumper(str, dumper)

    return made


def prepare(made: Engine, url: URL, *, migrate: bool) -> None:  # noqa: ARG001 - as the other database needs it
    """Connect once: the database is there, or not to be had, or out of reach.

    Raises:
        StoreAway: The server does not answer, or says that it will later.
        StoreError: It answers, and refuses.
    """
    try:
        made.connect().close()
    except OperationalError as error:
        said = " ".join(str(error.orig).split())
        if any(word in said for word in _REFUSED):
            raise StoreError(f"cannot be opened: {said}") from error
        raise StoreAway(f"cannot be reached: {said}") from error


def before_writing(connection: Connection, *, durable: bool) -> None:
    """Do nothing: what is to be said is said inside the transaction."""


def begun_writing(connection: Connection, *, durable: bool) -> None:
    """Wait for the durable write before this one, or say that this one's last moments may be lost with the power."""
    if durable:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    else:
        connection.exec_driver_sql("SET LOCAL synchronous_commit = off")


def cursor(connection: Connection, query: Select[Any]) -> Any:
    """Return the driver's cursor over what a query finds: one of the server's, or all would be in memory at once."""
    compiled = query.compile(dialect=connection.dialect, compile_kwargs={"render_postcompile": True})
    driver: Any = connection.connection.driver_connection
    made = driver.cursor(name="rows")
    made.execute(compiled.string, compiled.params)
    return made


def backup(url: URL, file: Path) -> None:
    """Refuse, and name the program that does it."""
    raise UsageError(
        f"PostgreSQL's own program makes the copy: pg_dump --format=custom --file={file} {url.database}", field="file"
    )


def passing(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed when it is tried again."""
    return getattr(error.orig, "sqlstate", None) in _PASSING


def for_good(error: DBAPIError) -> bool:  # noqa: ARG001 - SQLite's looks at it
    """Whether the connections fail so until they are opened anew: never, what is broken is not used again anyway."""
    return False


def _without_nul(text: Any) -> Any:
    # PostgreSQL's text takes every character but this one, which SQLite keeps.
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(text, str) else text


class _Text(StrDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(_without_nul(obj))


class _Varchar(StrDumperVarchar):
    def dump(self, obj: str) -> Any:
        return super().dump(_without_nul(obj))


class _Unknown(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(_without_nul(obj))
