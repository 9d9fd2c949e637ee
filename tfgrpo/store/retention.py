"""Deletes recorded traffic: what is too old, and what somebody asks to be erased. A few hundred rows a transaction.

Live traffic writes between two transactions. Which rows are meant is decided elsewhere; versions, deployments, runs
and evidence are never touched. What an experiment froze of a trajectory stays as a number: its name goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, exists, func, select, tuple_, update

from tfgrpo.store import schema
from tfgrpo.store.engine import Database

AT_ONCE: Final = 200
"""How many exchanges, or labels, one transaction deletes."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An exchange as far as deleting it is concerned."""

    id: str
    app: str
    set: str | None
    trajectory: str
    group: str
    started_at: float


@dataclass(frozen=True, slots=True)
class Deleted:
    """How many rows of each kind."""

    exchanges: int = 0
    bodies: int = 0
    labels: int = 0
    links: int = 0
    trajectories: int = 0

    def __add__(self, other: Deleted) -> Deleted:
        """Return the sums."""
        return Deleted(
            self.exchanges + other.exchanges,
            self.bodies + other.bodies,
            self.labels + other.labels,
            self.links + other.links,
            self.trajectories + other.trajectories,
        )


class Retention:
    """What of the recorded traffic can be deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, after: tuple[float, str], *, before: float | None, app: str | None = None) -> list[Kept]:
        """Return the exchanges behind `after` (a time and an id) that began before `before`, the oldest first."""
        table = schema.exchanges
        query = select(table.c.id, table.c.app, table.c.set, table.c.trajectory, table.c.group, table.c.started_at)
        # The first bound is what the index can use.
        query = query.where(table.c.started_at >= after[0], tuple_(table.c.started_at, table.c.id) > tuple_(*after))
        if before is not None:
            query = query.where(table.c.started_at < before)
        if app is not None:
            query = query.where(table.c.app == app)
        query = query.order_by(table.c.started_at, table.c.id).limit(AT_ONCE)
        return [Kept(*row) for row in self._database.read(lambda connection: connection.execute(query).all())]

    def count(self, exchanges: Sequence[Kept]) -> Deleted:
        """Return what `erase` would delete of these exchanges, when it has deleted all that are older."""
        ids = [one.id for one in exchanges]

        def work(connection: Connection) -> Deleted:
            bare = _emptied(exchanges, behind=max((one.started_at, one.id) for one in exchanges))
            return Deleted(
                len(ids),
                _count(connection, schema.bodies, schema.bodies.c.exchange.in_(ids)),
                _count(connection, schema.labels, schema.labels.c.exchange.in_(ids))
                + _count(connection, schema.labels, _of(schema.labels, connection, bare)),
                _count(connection, schema.links, schema.links.c.exchange.in_(ids)),
                _count(connection, schema.trajectories, bare),
            )

        return self._database.read(work)

    def erase(self, exchanges: Sequence[Kept], *, labels: bool = True) -> Deleted:
        """Delete these exchanges, their bodies and links, and the trajectories that have no exchange left.

        `labels`: those on them too; without, labels stay until their own age.
        """
        ids = [one.id for one in exchanges]

        def work(connection: Connection) -> Deleted:
            bodies = _delete(connection, schema.bodies, schema.bodies.c.exchange.in_(ids))
            links = _delete(connection, schema.links, schema.links.c.exchange.in_(ids))
            marks = _delete(connection, schema.labels, schema.labels.c.exchange.in_(ids)) if labels else 0
            gone = _delete(connection, schema.exchanges, schema.exchanges.c.id.in_(ids))
            bare = _emptied(exchanges, behind=(-1.0, ""))
            marks += _delete(connection, schema.labels, _of(schema.labels, connection, bare)) if labels else 0
            frozen = update(schema.frozen).where(_of(schema.frozen, connection, bare))
            connection.execute(frozen.values(trajectory=None))
            return Deleted(gone, bodies, marks, links, _delete(connection, schema.trajectories, bare))

        return self._database.write(work)

    def drop_bodies(self, before: float) -> int:
        """Delete the oldest bodies of exchanges that began before `before`, at most `AT_ONCE`, and return how many.

        Their exchanges say so from then on.
        """
        table, others = schema.bodies, schema.exchanges
        oldest = select(table.c.exchange).where(table.c.created_at < before).order_by(table.c.created_at).limit(AT_ONCE)

        def work(connection: Connection) -> int:
            ids = connection.execute(oldest).scalars().all()
            connection.execute(update(others).where(others.c.id.in_(ids)).values(record="expired"))
            return _delete(connection, table, table.c.exchange.in_(ids))

        return self._database.write(work)

    def drop_labels(self, before: float) -> int:
        """Delete the oldest labels that came before `before`, at most `AT_ONCE`, and return how many."""
        table = schema.labels
        key = tuple_(table.c.app, table.c.feedback_id)
        oldest = select(table.c.app, table.c.feedback_id).where(table.c.created_at < before)
        oldest = oldest.order_by(table.c.created_at).limit(AT_ONCE)
        return self._database.write(lambda connection: _delete(connection, table, key.in_(oldest)))

    def older(self, *, bodies: float, labels: float, metadata: float) -> Deleted:
        """Return how many exchanges, bodies and labels are older than these times."""

        def work(connection: Connection) -> Deleted:
            return Deleted(
                exchanges=_count(connection, schema.exchanges, schema.exchanges.c.started_at < metadata),
                bodies=_count(connection, schema.bodies, schema.bodies.c.created_at < max(bodies, metadata)),
                labels=_count(connection, schema.labels, schema.labels.c.created_at < labels),
            )

        return self._database.read(work)


def _emptied(exchanges: Sequence[Kept], *, behind: tuple[float, str]) -> ColumnElement[bool]:
    """The trajectories of these exchanges that have no exchange behind this place in the order of time."""
    table, others = schema.trajectories, schema.exchanges
    names = sorted({(one.app, one.trajectory) for one in exchanges})
    place = tuple_(others.c.started_at, others.c.id) > tuple_(*behind)
    left = exists().where(others.c.app == table.c.app, others.c.trajectory == table.c.trajectory, place)
    return and_(tuple_(table.c.app, table.c.trajectory).in_(names), ~left)


def _of(table: Table, connection: Connection, trajectories: ColumnElement[bool]) -> ColumnElement[bool]:
    """The rows of a table that name one of these trajectories."""
    mine = schema.trajectories
    names = connection.execute(select(mine.c.app, mine.c.trajectory).where(trajectories)).all()
    return tuple_(table.c.app, table.c.trajectory).in_([tuple(row) for row in names])


def _delete(connection: Connection, table: Table, which: ColumnElement[bool]) -> int:
    return connection.execute(delete(table).where(which)).rowcount


def _count(connection: Connection, table: Table, which: ColumnElement[bool]) -> int:
    found: Any = connection.execute(select(func.count()).select_from(table).where(which)).scalar_one()
    return int(found)
