"""Who made recorded traffic: apps, and the keyed hashes of the keys that clients showed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from sqlalchemy import func, select

from tfgrpo.store import schema
from tfgrpo.store.engine import Database
from tfgrpo.store.teaching import teaching, within
from tfgrpo.store.traffic import CHUNK
from tfgrpo.types import FIRST_DRAFT


class Makers:
    """The makers of all traffic."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keys_of(self, app: str, trajectories: Sequence[str]) -> dict[str, set[str]]:
        """Return the keyed hashes of the keys that made each of these trajectories of an app."""
        table = schema.exchanges
        found: dict[str, set[str]] = defaultdict(set)
        for at in range(0, len(trajectories), CHUNK):
            some = trajectories[at : at + CHUNK]
            query = select(table.c.trajectory, table.c.credential).distinct()
            query = query.where(table.c.app == app, table.c.trajectory.in_(some))
            rows = self._database.read(lambda connection, query=query: connection.execute(query).all())  # type: ignore[misc]
            for trajectory, key in rows:
                found[trajectory].add(key)
        return found

    def besides(self, apps: Collection[str], *, set_name: str | None = None, unnamed: bool = False) -> dict[str, int]:
        """Return how many exchanges other apps than these have of one set, of none (`unnamed`), or of all."""
        table = schema.exchanges
        query = select(table.c.app, func.count()).group_by(table.c.app)
        query = query.where(table.c.version < FIRST_DRAFT, table.c.app.not_in(sorted(apps)))
        query = query.where(*within(set_name, None, unnamed=unnamed))
        return {row[0]: row[1] for row in self._database.read(lambda connection: connection.execute(query).all())}

    def keys(
        self, *, set_name: str | None = None, unnamed: bool = False, apps: Collection[str] | None = None, most: int
    ) -> set[tuple[str, str]]:
        """Return who made what can be learned from, as (app, keyed hash of a key); at most so many of them."""
        table = schema.exchanges
        query = select(table.c.app, table.c.credential).distinct().limit(most)
        query = query.where(table.c.outcome == "complete", table.c.dialect.is_not(None), table.c.version < FIRST_DRAFT)
        query = query.where(*teaching(self._database, table), *within(set_name, apps, unnamed=unnamed))
        return {(row[0], row[1]) for row in self._database.read(lambda connection: connection.execute(query).all())}
