"""Whether the proxies of this store are bypassed: each time that it was switched, who did it and why. Append-only."""

from __future__ import annotations

import time
from typing import Final

import msgspec
from sqlalchemy import Connection, func, insert, select

from tfgrpo.store import history, schema
from tfgrpo.store.engine import Database

SHOWN: Final = 100
"""How many of the newest switches a history shows."""


class Switch(msgspec.Struct, frozen=True):
    """One time that the bypass was switched. `created_at` in seconds since the epoch."""

    number: int
    bypass: bool
    reason: str
    actor: str
    created_at: float


class Bypass:
    """The switches of a store, numbered from 1."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def switch(self, *, on: bool, reason: str, actor: str) -> Switch:
        """Switch the bypass on or off for all proxies of this store. Durable.

        Raises UsageError for a reason that is too long.
        """
        history.check_said(reason=reason, actor=actor)
        table = schema.bypass

        def work(connection: Connection) -> Switch:
            last = connection.execute(select(func.max(table.c.number))).scalar() or 0
            made = Switch(last + 1, on, reason, actor, time.time())
            connection.execute(insert(table).values(**msgspec.structs.asdict(made)))
            return made

        return self._database.write(work, durable=True)

    def history(self, limit: int = SHOWN) -> list[Switch]:
        """Return the newest switches, the newest first."""
        table = schema.bypass
        query = select(table).order_by(table.c.number.desc()).limit(limit)
        return [Switch(*row) for row in self._database.read(lambda connection: connection.execute(query).all())]
