"""Which recorded traffic may teach: all but what was withdrawn. Conditions for queries, made where they are asked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Table, func, select, tuple_, union

from tfgrpo.store import schema
from tfgrpo.store.engine import Database


def teaching(database: Database, table: Table) -> list[ColumnElement[bool]]:
    """Return the conditions under which rows of a table that names app, trajectory and group may teach."""
    mine = schema.withdrawals
    kinds = set(database.read(lambda connection: connection.execute(select(mine.c.kind).distinct()).scalars().all()))
    trajectory = tuple_(table.c.app, table.c.trajectory)
    conditions: list[ColumnElement[bool]] = []
    if "app" in kinds:
        conditions.append(table.c.app.not_in(select(mine.c.name).where(mine.c.kind == "app")))
    if "exchange" in kinds:
        conditions.append(trajectory.not_in(select(mine.c.app, mine.c.trajectory).where(mine.c.kind == "exchange")))
    if "source" in kinds:
        named = select(mine.c.name).where(mine.c.kind == "source")
        conditions += [table.c.group.not_in(named), trajectory.not_in(judged_by(schema.labels.c.source.in_(named)))]
    return conditions


def within(set_name: str | None, apps: Collection[str] | None, *, unnamed: bool) -> list[ColumnElement[bool]]:
    """The conditions of an exchange that it is of one set, or of none (`unnamed`), and of one of `apps`."""
    table, found = schema.exchanges, []
    if set_name is not None:
        found.append(table.c.set == set_name)
    elif unnamed:
        found.append(table.c.set.is_(None))
    if apps is not None:
        # Bare, it would lead SQLite through all rows of an app in the order of their trajectories.
        found.append(func.coalesce(table.c.app, "").in_(sorted(apps)))
    return found


def judged_by(labels: ColumnElement[bool]) -> Any:
    """The query of the trajectories (app, trajectory) that any of these labels judges."""
    table, others = schema.labels, schema.exchanges
    whole = select(table.c.app, table.c.trajectory).where(table.c.trajectory.is_not(None), labels)
    single = select(others.c.app, others.c.trajectory).join(table, table.c.exchange == others.c.id).where(labels)
    return union(whole, single)
