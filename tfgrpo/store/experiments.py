"""What live experiments look at: drawn trajectories in the order they began, their labels, those that await one.

Drawn are those with a probability, under the revisions of one experiment. It judges nothing and keeps nothing: the
same rows give the same answers again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import Row, Select, exists, func, or_, select, tuple_

from tfgrpo.rewards import Placed
from tfgrpo.store import schema
from tfgrpo.store.engine import Database
from tfgrpo.types import Assignment, Exchange, Label

Place: TypeAlias = tuple[float, str, str]
"""Where one is in an order: a time, an app, an id."""

START: Final[Place] = (0.0, "", "")
AT_ONCE: Final = 500
"""How many rows one look takes; also how many ids one statement names."""


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

    def labels(self, app: str, exchanges: Mapping[str, Sequence[Exchange]]) -> Mapping[str, list[Placed]]:
        """Return the labels on these trajectories of an app and on their exchanges, which are named with them."""
        labels = schema.labels
        of = {one.id: one for some in exchanges.values() for one in some}
        found: dict[str, list[Placed]] = defaultdict(list)
        for names in _chunks(list(exchanges)):
            query = select(labels).where(labels.c.app == app, labels.c.trajectory.in_(names))
            for row in self._rows(query):
                found[row.trajectory].append(Placed(_label(row), row.trajectory, None))
        for ids in _chunks(list(of)):
            # The app is looked at here: named in the query, SQLite takes its index and reads all labels of the app.
            for row in self._rows(select(labels).where(labels.c.exchange.in_(ids))):
                if row.app == app:
                    exchange = of[row.exchange]
                    found[exchange.trajectory].append(Placed(_label(row), exchange.trajectory, exchange.started_at))
        return found

    def labels_since(
        self, set_name: str, revisions: Collection[int], *, after: Place, until: float
    ) -> tuple[list[tuple[Assignment, Placed]], Place | None]:
        """Return the next labels behind `after` that came before `until`, with the drawn trajectories they speak of.

        The oldest first; a label's place is its time, its app and its id. Beside them stands the place to go on from,
        None when there are no more: of at most `AT_ONCE` labels of all sets those of others are left out.
        """
        labels = schema.labels
        place = tuple_(labels.c.created_at, labels.c.app, labels.c.feedback_id)
        query = (
            select(labels)
            .where(labels.c.created_at >= after[0], place > tuple_(*after), labels.c.created_at < until)
            .order_by(labels.c.created_at, labels.c.app, labels.c.feedback_id)
            .limit(AT_ONCE)
        )
        page = [_label(row) for row in self._rows(query)]
        placed = self._placed(page)
        drawn = self._assignments(set_name, revisions, {(one.label.app, one.trajectory) for one in placed})
        found = [(drawn[key], one) for one in placed if (key := (one.label.app, one.trajectory)) in drawn]
        last = page[-1] if page else None
        return found, None if last is None else (last.created_at, last.app, last.feedback_id)

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

    def trained_groups(self, set_name: str, runs: Collection[str]) -> set[str]:
        """Return the groups of a set's trajectories that these runs learned from."""
        used, table = schema.learned_from, schema.trajectories
        # Not as a join: SQLite would look through the set once for each trajectory.
        mine = select(used.c.trajectory).where(used.c.run.in_(runs))
        query = select(table.c.group).where(table.c.set == set_name, table.c.trajectory.in_(mine)).distinct()
        return {row.group for row in self._rows(query)}

    def _placed(self, labels: Sequence[Label]) -> list[Placed]:
        """The labels whose trajectory is known, in their order."""
        table = schema.exchanges
        ids = [label.exchange for label in labels if label.exchange is not None]
        query = select(table.c.id, table.c.app, table.c.trajectory, table.c.started_at).where(table.c.id.in_(ids))
        of = {(row.id, row.app): row for row in self._rows(query)} if ids else {}
        placed = []
        for label in labels:
            row = of.get((label.exchange or "", label.app))
            if row is not None:
                placed.append(Placed(label, row.trajectory, row.started_at))
            elif label.trajectory is not None:
                placed.append(Placed(label, label.trajectory, None))
        return placed

    def _assignments(
        self, set_name: str, revisions: Collection[int], keys: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], Assignment]:
        """Those of these trajectories, by app and id, that were drawn."""
        table = schema.trajectories
        found: dict[tuple[str, str], Assignment] = {}
        for app in {app for app, _ in keys}:
            names = [name for of, name in keys if of == app]
            # By the primary key; the set's index would lead through all its trajectories.
            for row in self._rows(select(table).where(table.c.app == app, table.c.trajectory.in_(names))):
                one = _assignment(row)
                if one.set == set_name and one.revision in revisions and one.probability is not None:
                    found[app, one.trajectory] = one
        return found

    def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        return self._database.read(lambda connection: connection.execute(query).all())


def _drawn(set_name: str, revisions: Collection[int]) -> tuple[Any, ...]:
    table = schema.trajectories
    return (table.c.set == set_name, table.c.revision.in_(revisions), table.c.probability.is_not(None))


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), AT_ONCE):
        yield ids[start : start + AT_ONCE]


def _assignment(row: Row[Any]) -> Assignment:
    return Assignment(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it


def _label(row: Row[Any]) -> Label:
    return Label(**row._mapping)  # noqa: SLF001 - as above
