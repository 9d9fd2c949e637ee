"""What live experiments look at: drawn trajectories in the order they began, their labels, those that await one.

Drawn are those with a probability, under the revisions of one experiment. It judges nothing and keeps nothing: the
same rows give the same answers again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec.structs import fields
from sqlalchemy import Row, Select, and_, exists, func, or_, select, tuple_

from tfgrpo.store import schema
from tfgrpo.store.engine import Database
from tfgrpo.trajectories import Placed
from tfgrpo.types import Assignment, Label

Place: TypeAlias = tuple[float, str, str]
"""Where one is in an order: a time, an app, an id."""

START: Final[Place] = (0.0, "", "")
AT_ONCE: Final = 500
"""How many rows one look takes; also how many ids one statement names."""

_LABEL = tuple(field.name for field in fields(Label))
_ASSIGNMENT = tuple(field.name for field in fields(Assignment))


class Experiments:
    """The drawn trajectories of all sets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begun(self, set_name: str, revisions: Collection[int], *, after: Place, until: float) -> list[Assignment]:
        """Return the drawn trajectories behind `after` that began before `until`, the oldest first, at most `AT_ONCE`.

        A trajectory's place is its beginning, its app and its id.
        """
        table = schema.trajectories
        place = tuple_(table.c.started_at, table.c.app, table.c.trajectory)
        query = (
            select(table)
            # The first bound is what the index can use.
            .where(*_drawn(set_name, revisions), table.c.started_at >= after[0], place > tuple_(*after))
            .where(table.c.started_at < until)
            .order_by(table.c.started_at, table.c.app, table.c.trajectory)
            .limit(AT_ONCE)
        )
        return [_assignment(row) for row in self._rows(query)]

    def labels(self, app: str, trajectories: Sequence[str]) -> Mapping[str, list[Placed]]:
        """Return the labels on these trajectories of an app, at most `AT_ONCE` of them, and on their exchanges."""
        labels, exchanges = schema.labels, schema.exchanges
        queries = (
            select(labels, labels.c.trajectory.label("of")).where(
                labels.c.app == app, labels.c.exchange.is_(None), labels.c.trajectory.in_(trajectories)
            ),
            select(labels, exchanges.c.trajectory.label("of"), exchanges.c.started_at.label("at"))
            .join(exchanges, labels.c.exchange == exchanges.c.id)
            .where(exchanges.c.app == app, exchanges.c.trajectory.in_(trajectories), labels.c.app == app),
        )
        found: dict[str, list[Placed]] = defaultdict(list)
        for query in queries:
            for row in self._rows(query):
                found[row.of].append(_placed(row))
        return found

    def labels_since(
        self, set_name: str, revisions: Collection[int], *, after: Place, until: float
    ) -> list[tuple[Assignment, Placed]]:
        """Return the labels behind `after` that came before `until`, with the drawn trajectories they speak of.

        The oldest first, at most `AT_ONCE`. A label's place is its time, its app and its id.
        """
        labels, exchanges, trajectories = schema.labels, schema.exchanges, schema.trajectories
        of = func.coalesce(labels.c.trajectory, exchanges.c.trajectory)
        place = tuple_(labels.c.created_at, labels.c.app, labels.c.feedback_id)
        query = (
            select(labels, exchanges.c.started_at.label("at"), of.label("of"), *_named(trajectories))
            .select_from(
                labels.outerjoin(
                    exchanges, and_(labels.c.exchange == exchanges.c.id, labels.c.app == exchanges.c.app)
                ).join(trajectories, and_(trajectories.c.app == labels.c.app, trajectories.c.trajectory == of))
            )
            .where(*_drawn(set_name, revisions), labels.c.created_at >= after[0], place > tuple_(*after))
            .where(labels.c.created_at < until)
            .order_by(labels.c.created_at, labels.c.app, labels.c.feedback_id)
            .limit(AT_ONCE)
        )
        return [(_assignment(row, "t_"), _placed(row)) for row in self._rows(query)]

    def awaiting(self, set_name: str, revisions: Collection[int], *, since: float, most: int) -> int:
        """Return how many candidate trajectories that began after `since` have no label yet; counts no further than
        `most`.
        """
        labels, exchanges, mine = schema.labels, schema.exchanges, schema.trajectories
        direct = exists().where(labels.c.app == mine.c.app, labels.c.trajectory == mine.c.trajectory)
        by_exchange = exists().where(
            exchanges.c.app == mine.c.app,
            exchanges.c.trajectory == mine.c.trajectory,
            labels.c.exchange == exchanges.c.id,
        )
        waiting = (
            select(mine.c.trajectory)
            .where(*_drawn(set_name, revisions), mine.c.arm == "candidate", mine.c.started_at > since)
            .where(~or_(direct, by_exchange))
            .limit(most)
        )
        count = select(func.count()).select_from(waiting.subquery())
        return int(self._database.read(lambda connection: connection.execute(count).scalar_one()))

    def trained_groups(self, runs: Collection[str]) -> set[str]:
        """Return the groups of the trajectories that these runs learned from."""
        used, table = schema.learned_from, schema.trajectories
        query = (
            select(table.c.group)
            .join(used, and_(used.c.trajectory == table.c.trajectory, used.c.set == table.c.set))
            .where(used.c.run.in_(runs))
            .distinct()
        )
        return {row.group for row in self._rows(query)}

    def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        return self._database.read(lambda connection: connection.execute(query).all())


def _drawn(set_name: str, revisions: Collection[int]) -> tuple[Any, ...]:
    table = schema.trajectories
    return (table.c.set == set_name, table.c.revision.in_(revisions), table.c.probability.is_not(None))


def _named(table: Any) -> list[Any]:
    return [table.c[name].label(f"t_{name}") for name in _ASSIGNMENT]


def _assignment(row: Row[Any], prefix: str = "") -> Assignment:
    values = row._mapping  # noqa: SLF001 - SQLAlchemy's public name for it
    return Assignment(**{name: values[f"{prefix}{name}"] for name in _ASSIGNMENT})


def _placed(row: Row[Any]) -> Placed:
    values = row._mapping  # noqa: SLF001 - as above
    return Placed(Label(**{name: values[name] for name in _LABEL}), values["of"], values.get("at"))
