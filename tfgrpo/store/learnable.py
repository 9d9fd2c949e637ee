"""What of the recorded traffic can be learned from. It reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Integer, Select, and_, case, cast, func, not_, or_, select

from tfgrpo.store import schema
from tfgrpo.store.engine import Database
from tfgrpo.store.teaching import teaching, within
from tfgrpo.types import FIRST_DRAFT


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trajectory as far as forming groups needs it. `mixed`: its exchanges do not share one version."""

    app: str
    set: str | None
    trajectory: str
    group: str
    model: str | None
    version: int
    choices: int
    mixed: bool


UNREADABLE, WHOLE, TRUNCATED = range(3)
"""What can be learned from an exchange: nothing, for it is not complete or of no API that we read; all; not all."""

Outline: TypeAlias = tuple[str, str, str, str, int, int, int, *tuple[str, ...]]
"""Of an exchange: id, app, trajectory, group, version, choices, one of the three above, and the keyed hash of its key
where it was asked for. A tuple, for there may be a million of them."""


class Learnable:
    """Recorded traffic as training sees it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def attempts(
        self, *, set_name: str | None = None, unnamed: bool = False, apps: Collection[str] | None = None
    ) -> Iterator[Attempt]:
        """Yield the trajectories that can be learned from: those of one set, of none (`unnamed`), or all; of `apps`.

        They have a complete exchange of an API that we read, and no truncated one. What a training run made under a
        draft is not among them: the run has learned from it. Nor is what was withdrawn.
        """
        table = schema.exchanges
        query = (
            select(
                table.c.app,
                func.max(table.c.set),
                table.c.trajectory,
                func.max(table.c.group),
                func.max(table.c.model),
                func.max(table.c.version),
                func.max(table.c.choices),
                func.min(table.c.version) != func.max(table.c.version),
            )
            .where(*teaching(self._database, table))
            .order_by(table.c.app, table.c.trajectory)
        )
        query = _learnable(query).where(*within(set_name, apps, unnamed=unnamed))
        rows = self._database.read(lambda connection: connection.execute(query).all())
        for row in rows:
            yield Attempt(*row)

    def withdrawn(self, *, set_name: str | None = None, unnamed: bool = False) -> int:
        """Return how many trajectories are not among the attempts because they were withdrawn."""
        conditions = teaching(self._database, schema.exchanges)
        if not conditions:
            return 0
        query = _learnable(select(schema.exchanges.c.app, schema.exchanges.c.trajectory))
        query = query.where(not_(and_(*conditions)), *within(set_name, None, unnamed=unnamed))
        count = select(func.count()).select_from(query.subquery())
        return int(self._database.read(lambda connection: connection.execute(count).scalar_one()))

    def outlines(
        self,
        *,
        set_name: str | None = None,
        unnamed: bool = False,
        apps: Collection[str] | None = None,
        keys: bool = False,
    ) -> Iterator[Outline]:
        """Yield the exchanges of one set, of none (`unnamed`), or of all, and of `apps`, as forming groups needs them.

        They come in no order, and one by one. What a training run made under a draft is not among them, nor what was
        withdrawn. Whose they are they say with `keys`.
        """
        table = schema.exchanges
        readable = and_(table.c.outcome == "complete", table.c.dialect.is_not(None))
        partial = or_(table.c.truncated, table.c.record != "full")
        use = case((not_(readable), UNREADABLE), (partial, TRUNCATED), else_=WHOLE)
        columns = (table.c.id, table.c.app, table.c.trajectory, table.c.group, table.c.version, table.c.choices)
        key = [table.c.credential] if keys else []
        query = select(*columns, use, *key).where(table.c.version < FIRST_DRAFT, *teaching(self._database, table))
        return self._database.rows(query.where(*within(set_name, apps, unnamed=unnamed)))

    def without_bodies(
        self, *, set_name: str | None = None, unnamed: bool = False, apps: Collection[str] | None = None
    ) -> int:
        """Return how many trajectories of one set, of none (`unnamed`), or of all, and of `apps`, miss a body.

        It was not kept, or is too old.
        """
        table = schema.exchanges
        query = select(table.c.app, table.c.trajectory).distinct().where(table.c.record != "full")
        query = query.where(*within(set_name, apps, unnamed=unnamed))
        count = select(func.count()).select_from(query.subquery())
        return int(self._database.read(lambda connection: connection.execute(count).scalar_one()))


def _learnable(query: Select[Any]) -> Select[Any]:
    """Bound a query of exchanges to trajectories that can be learned from, a row for each."""
    table = schema.exchanges
    return (
        query.where(table.c.outcome == "complete", table.c.dialect.is_not(None), table.c.version < FIRST_DRAFT)
        .group_by(table.c.app, table.c.trajectory)
        .having(func.max(cast(table.c.truncated, Integer)) == 0)
    )
