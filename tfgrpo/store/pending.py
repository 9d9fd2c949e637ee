"""Lessons below the quorum, by set: remembered with the groups that back them until others say the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from sqlalchemy import Connection, delete, insert, select

from tfgrpo.store import schema
from tfgrpo.store.engine import Database
from tfgrpo.types import Pending


class PendingLessons:
    """The pending lessons of all sets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, set_name: str) -> list[Pending]:
        """Return what is pending in a set, the best backed first."""
        table = schema.pending
        query = select(table.c.lesson).where(table.c.set == set_name).order_by(table.c.number)
        rows = self._database.read(lambda connection: connection.execute(query).scalars().all())
        return [msgspec.json.decode(row, type=Pending) for row in rows]

    def replace(self, set_name: str, lessons: Sequence[Pending]) -> None:
        """Remember these lessons in the place of those there are."""
        table = schema.pending
        rows = [
            {"set": set_name, "number": number, "lesson": msgspec.json.encode(one).decode()}
            for number, one in enumerate(lessons, 1)
        ]

        def work(connection: Connection) -> None:
            connection.execute(delete(table).where(table.c.set == set_name))
            if rows:
                connection.execute(insert(table), rows)

        self._database.write(work, durable=True)


def all_of(connection: Connection) -> list[tuple[str, int, Pending]]:
    """Return the pending lessons of all sets, each with its set and its number there."""
    table = schema.pending
    rows = connection.execute(select(table.c.set, table.c.number, table.c.lesson)).all()
    return [(row.set, row.number, msgspec.json.decode(row.lesson, type=Pending)) for row in rows]


def drop(connection: Connection, rests: Callable[[str, Pending], bool]) -> int:
    """Delete the pending lessons for which `rests` (of a set, on what is withdrawn) holds; return how many."""
    table = schema.pending
    gone = [(name, number) for name, number, lesson in all_of(connection) if rests(name, lesson)]
    for name, number in gone:
        connection.execute(delete(table).where(table.c.set == name, table.c.number == number))
    return len(gone)
