"""Recorded judgements. A label is stored once, durably, whether or not the exchange it names has landed yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec.structs
from sqlalchemy import Connection, and_, func, or_, select

from tfgrpo.errors import Conflict
from tfgrpo.rewards import Placed
from tfgrpo.store import schema
from tfgrpo.store.engine import Database, insert
from tfgrpo.types import Label

Status = Literal["stored", "duplicate"]
Target = Literal["exchange", "trajectory"]

TARGETS: tuple[Target, ...] = ("exchange", "trajectory")
"""What a label can speak of. One that names both speaks of the exchange."""

Judged: TypeAlias = tuple[str, str, int, str, float, *tuple[str, ...]]
"""Of a label: app, exchange or trajectory, choice, metric, value, and the keyed hash of its key where it was asked for.
A tuple, for there may be a million of them, and each column more takes a tenth of a second then."""

CHUNK = 500
"""How many ids one statement names; SQLite's limit of variables is far above it."""

_LABEL = tuple(field.name for field in msgspec.structs.fields(Label))
_CONTENT = tuple(name for name in _LABEL if name not in ("app", "feedback_id", "created_at", "credential"))


class OtherContent(Conflict):
    """A feedback id that is stored already, with other content. `index` is the label's place in what was sent."""

    def __init__(self, feedback_id: str, index: int) -> None:
        super().__init__(
            f"feedback_id {feedback_id!r} is stored already with other content; send a new feedback_id to judge again"
        )
        self.index = index


class Labels:
    """The labels of all apps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, labels: Sequence[Label]) -> list[Status]:
        """Store the labels, all or none, and say of each whether it is new. On return they survive power loss.

        Raises:
            OtherContent: A feedback id is stored already, or stands twice in `labels`, with other content.
        """

        def work(connection: Connection) -> list[Status]:
            return [_add(connection, label, index) for index, label in enumerate(labels)]

        return self._database.write(work, durable=True)

    def of_trajectory(self, app: str, trajectory: str) -> list[Label]:
        """Return the labels on a trajectory and on its exchanges, the oldest first."""
        labels, exchanges = schema.labels, schema.exchanges
        mine = select(exchanges.c.id).where(exchanges.c.app == app, exchanges.c.trajectory == trajectory)
        query = (
            select(labels)
            .where(
                labels.c.app == app,
                or_(labels.c.trajectory == trajectory, labels.c.exchange.in_(mine)),
            )
            .order_by(labels.c.created_at, labels.c.feedback_id)
        )
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [Label(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name for it

    def values(self, target: Target, metrics: Collection[str], *, keys: bool = False) -> Iterator[Judged]:
        """Yield the labels of these metrics, in no order, with `keys` each with the key that gave it."""
        table = schema.labels
        columns = [table.c.app, table.c[target], table.c.choice, table.c.metric, table.c.value]
        query = select(*columns, *([table.c.credential] if keys else []))
        other = table.c.exchange.is_not(None) if target == "exchange" else table.c.exchange.is_(None)
        return self._database.rows(query.where(other, table.c.metric.in_(metrics)))

    def placed_on(self, app: str, trajectories: Sequence[str]) -> list[Placed]:
        """Return the labels on these trajectories of an app and on their exchanges.

        Labels whose exchange has not landed are left out.
        """
        found: list[Placed] = []
        for at in range(0, len(trajectories), CHUNK):
            some = trajectories[at : at + CHUNK]
            found += self._database.read(lambda connection, some=some: _placed(connection, app, some))  # type: ignore[misc]
        return found

    def placed(self, *, set_name: str | None = None, unnamed: bool = False) -> Iterator[tuple[str, Placed]]:
        """Yield (app, label with its trajectory) for the traffic of one set, of none (`unnamed`), or of all.

        Labels whose exchange has not landed are left out.
        """
        labels, exchanges, trajectories = schema.labels, schema.exchanges, schema.trajectories
        of_exchange = (
            select(labels, exchanges.c.trajectory.label("of"), exchanges.c.started_at.label("at"))
            # With the app in the join, SQLite would look through all labels of an app for each exchange.
            .join(exchanges, labels.c.exchange == exchanges.c.id)
            .where(
                func.coalesce(labels.c.app, "") == exchanges.c.app, *_within(exchanges.c.set, set_name, unnamed=unnamed)
            )
        )
        of_trajectory = (
            select(labels, labels.c.trajectory.label("of"))
            .join(
                trajectories,
                and_(
                    labels.c.trajectory == trajectories.c.trajectory,
                    labels.c.app == trajectories.c.app,
                ),
            )
            .where(labels.c.exchange.is_(None), *_within(trajectories.c.set, set_name, unnamed=unnamed))
        )
        for query in (of_exchange, of_trajectory):
            rows = self._database.read(lambda connection, query=query: connection.execute(query).all())  # type: ignore[misc]
            for row in rows:
                values = row._mapping  # noqa: SLF001 - as above
                label = Label(**{name: values[name] for name in _LABEL})
                yield label.app, Placed(label, values["of"], values.get("at"))


def _placed(connection: Connection, app: str, trajectories: Sequence[str]) -> list[Placed]:
    labels, exchanges = schema.labels, schema.exchanges
    mine = exchanges.c.app == app, exchanges.c.trajectory.in_(trajectories)
    # The label's app is looked at here: in the join, it would lead SQLite to all labels of an app for each exchange.
    on_exchanges = select(labels, exchanges.c.trajectory.label("of"), exchanges.c.started_at.label("at"))
    on_exchanges = on_exchanges.join(exchanges, labels.c.exchange == exchanges.c.id).where(*mine)
    own = labels.c.app == app, labels.c.trajectory.in_(trajectories), labels.c.exchange.is_(None)
    on_trajectories = select(labels, labels.c.trajectory.label("of")).where(*own)
    found = []
    for query in (on_exchanges, on_trajectories):
        for row in connection.execute(query).mappings():
            label = Label(**{name: row[name] for name in _LABEL})
            if label.app == app:
                found.append(Placed(label, row["of"], row.get("at")))
    return found


def _within(column: Any, set_name: str | None, *, unnamed: bool) -> tuple[Any, ...]:
    if set_name is not None:
        return (column == set_name,)
    return (column.is_(None),) if unnamed else ()


def _add(connection: Connection, label: Label, index: int) -> Status:
    table = schema.labels
    row = {name: getattr(label, name) for name in _LABEL}
    new = insert(connection, table).on_conflict_do_nothing().returning(table.c.feedback_id)
    if connection.execute(new, row).first() is not None:
        return "stored"
    found = connection.execute(
        select(table).where(table.c.app == label.app, table.c.feedback_id == label.feedback_id)
    ).one()
    if any(found._mapping[name] != row[name] for name in _CONTENT):  # noqa: SLF001 - as above
        raise OtherContent(label.feedback_id, index)
    return "duplicate"
