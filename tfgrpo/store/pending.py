"""Lessons below the quorum, by set: remembered with the groups that back them until others say the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import msgspec
from sqlalchemy import Connection, delete, insert, select

from tfgrpo.store import schema
from tfgrpo.store.engine import Database
from tfgrpo.types import Pending
from tfgrpo.withdrawal import group_of


class PendingLessons:
    """The pending lessons of all sets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, set_name: str) -> list[Pending]:
        """Return what is pending in a set, the best backed first."""
        return self._database.read(lambda connection: [one for _, one in _all(connection, set_name)])

    def replace(self, set_name: str, lessons: Sequence[Pending]) -> None:
        """Remember these lessons in the place of those there are."""
        self._database.write(lambda connection: _replace(connection, set_name, lessons), durable=True)

    def forget(self, groups: Collection[str]) -> int:
        """Forget what rests on any of these groups, in any set, and return how many lessons that were."""

        def rests(_: str, one: Pending) -> bool:
            return any(group_of(source) in groups for source in one.sources)

        return self._database.write(lambda connection: drop(connection, rests), durable=True)


def sources(connection: Connection) -> frozenset[str]:
    """Return what pending lessons name as their sources, and what else backs them."""
    return frozenset(source for _, one in _all(connection) for source in (*one.sources, *one.backing))


def drop(connection: Connection, rests: Callable[[str, Pending], bool]) -> int:
    """Forget the lessons of which `rests` holds, called with set and lesson; return how many."""
    everything = _all(connection)
    kept = [pair for pair in everything if not rests(*pair)]
    for name in {name for name, _ in everything} if len(kept) < len(everything) else ():
        _replace(connection, name, [one for of, one in kept if of == name])
    return len(everything) - len(kept)


def _all(connection: Connection, set_name: str | None = None) -> list[tuple[str, Pending]]:
    table = schema.pending
    query = select(table.c.set, table.c.lesson).order_by(table.c.set, table.c.number)
    if set_name is not None:
        query = query.where(table.c.set == set_name)
    return [(name, msgspec.json.decode(lesson, type=Pending)) for name, lesson in connection.execute(query)]


def _replace(connection: Connection, set_name: str, lessons: Sequence[Pending]) -> None:
    table = schema.pending
    rows = [
        {"set": set_name, "number": number, "lesson": msgspec.json.encode(one).decode()}
        for number, one in enumerate(lessons, 1)
    ]
    connection.execute(delete(table).where(table.c.set == set_name))
    if rows:
        connection.execute(insert(table), rows)
