"""Traffic as a person looks through it: filtered, the newest first, a page at a time.

Nothing is counted and nothing is skipped: a page goes on behind a place, the last one it showed. Only the set, the time
and a trajectory of an app have an index, for each index is paid for by every exchange that is recorded. Any other
filter looks through rows, a window of them after the other, until the page is full or its time is up; it then says how
far back it looked, and the next page goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import zstandard
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    Select,
    func,
    literal_column,
    not_,
    or_,
    select,
    tuple_,
)
from sqlalchemy.sql import FromClause

from tfgrpo.rewards import Placed
from tfgrpo.store import schema
from tfgrpo.store.distinct import distinct
from tfgrpo.store.engine import Database
from tfgrpo.types import Assignment, Bodies, Exchange, Label

WINDOW = 4_000
"""How many rows are looked through between two looks at the clock."""

LOW = 0.5
"""A reward below is low, any other high."""

PACKED = 4 << 20
"""Bytes of compressed bodies that are in memory at once, while texts are looked through; one may have more."""

LABELS = 500
"""How many labels are looked at for one page, of each app."""

NAMES = 100
"""How many apps or sets are named, to choose from."""

Place: TypeAlias = tuple[float | str, ...]
"""Where a row stands: its beginning, then what tells it from others of the same moment."""

Judged = Literal["any", "none", "low", "high"]
"""Has a label, has none, has a reward below or not below `LOW`."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; None: whatever it is. Times are of the beginning, `until` itself not included.

    A trajectory that is named with its app is found by an index, and so are set and time.
    """

    app: str | None = None
    trajectory: str | None = None
    set: str | None = None
    model: str | None = None
    arm: str | None = None
    judged: Judged | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Found(Generic[_T]):
    """A page. `next`: the place to go on behind, None at the end; `back_to`: how far back was looked, None for all."""

    rows: list[_T]
    next: Place | None
    back_to: float | None = None


class Browsing:
    """The recorded traffic of all apps."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def exchanges(
        self, wanted: Wanted, *, behind: Place | None = None, limit: int, seconds: float, window: int = WINDOW
    ) -> Found[Exchange]:
        """Return exchanges; a place is a beginning and an id. No window begins after `seconds`."""
        table, labels = schema.exchanges, schema.labels
        mine = _any(labels.c.exchange == table.c.id, *_worth(wanted.judged))
        order = (table.c.started_at, table.c.id)
        look = _Look(table, order, wanted, mine, limit=limit, until=time.monotonic() + seconds, window=window)
        found = self._database.read(lambda connection: look.page(connection, behind))
        return Found([_exchange(row) for row in found.rows], found.next, found.back_to)

    def trajectories(
        self, wanted: Wanted, *, behind: Place | None = None, limit: int, seconds: float, window: int = WINDOW
    ) -> Found[Assignment]:
        """Return trajectories; a place is a beginning, an app and an id. A label on an exchange is one of its own.

        No window begins after `seconds`.
        """
        table, labels, exchanges = schema.trajectories, schema.labels, schema.exchanges
        worth = _worth(wanted.judged)
        direct = _any(labels.c.app == table.c.app, labels.c.trajectory == table.c.trajectory, *worth)
        through = _any(
            exchanges.c.app == table.c.app,
            exchanges.c.trajectory == table.c.trajectory,
            labels.c.exchange == exchanges.c.id,
            *worth,
        )
        order = (table.c.started_at, table.c.app, table.c.trajectory)
        labelled = or_(direct, through)
        look = _Look(table, order, wanted, labelled, limit=limit, until=time.monotonic() + seconds, window=window)
        found = self._database.read(lambda connection: look.page(connection, behind))
        return Found([Assignment(**row._mapping) for row in found.rows], found.next, found.back_to)  # noqa: SLF001 - SQLAlchemy's public name for it

    def first(self, app: str, trajectory: str, *, behind: Place | None = None, limit: int) -> list[Exchange]:
        """Return the first exchanges of a trajectory in order, or those behind a place, at most `limit`."""
        query = _first(app, trajectory, behind, limit)
        return [_exchange(row) for row in self._database.read(lambda connection: connection.execute(query).all())]

    def firsts(self, some: Sequence[Assignment], *, limit: int) -> list[list[Exchange]]:
        """Return the first exchanges of each of these trajectories, at most `limit` of each."""

        def work(connection: Connection) -> list[list[Exchange]]:
            queries = (_first(one.app, one.trajectory, None, limit) for one in some)
            return [[_exchange(row) for row in connection.execute(query).all()] for query in queries]

        return self._database.read(work)

    def newest(self, some: Sequence[Assignment]) -> list[Exchange | None]:
        """Return the last exchange of each of these trajectories; None: none is recorded."""
        given, table = schema.trajectories, schema.exchanges
        of = select(table.c.id).where(table.c.app == given.c.app, table.c.trajectory == given.c.trajectory)
        last = of.order_by(table.c.started_at.desc(), table.c.id.desc()).limit(1).scalar_subquery()
        keys = [(one.app, one.trajectory) for one in some]

        def work(connection: Connection) -> list[Exchange | None]:
            names: list[str] = []
            # App by app: for a pair of columns SQLite would read the index of all trajectories.
            for app in {app for app, _ in keys}:
                ids = select(last).where(
                    given.c.app == app, given.c.trajectory.in_([key[1] for key in keys if key[0] == app])
                )
                names += connection.execute(ids).scalars()
            rows = connection.execute(select(table).where(table.c.id.in_(names))).all()
            found = {(row.app, row.trajectory): _exchange(row) for row in rows}
            return [found.get(key) for key in keys]

        return self._database.read(work)

    def names(self, column: Literal["app", "set"], *, most: int = NAMES) -> list[str]:
        """Return the apps or sets that have recorded traffic, in order, `most` of them."""
        name = {"app": schema.exchanges.c.app, "set": schema.trajectories.c.set}[column]
        query = distinct(name).limit(most)
        return sorted(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def labels(
        self, trajectories: Mapping[tuple[str, str], Sequence[Exchange]], *, most: int = LABELS
    ) -> dict[tuple[str, str], list[Placed]]:
        """Return the labels on these trajectories, (app, id) each, and on the exchanges named with them.

        The newest first, of each app `most` on either: anyone may label, as often as they like.
        """
        of = {one.id: one for some in trajectories.values() for one in some}
        found: dict[tuple[str, str], list[Placed]] = {key: [] for key in trajectories}
        for app in {app for app, _ in trajectories}:
            names = [name for one, name in trajectories if one == app]
            ids = [one.id for one in of.values() if one.app == app]
            for label in self._database.read(lambda of, ask=(app, names, ids): _labels(of, *ask, most=most)):  # type: ignore[misc]
                exchange = of.get(label.exchange or "")
                name = label.trajectory or "" if exchange is None else exchange.trajectory
                at = None if exchange is None else exchange.started_at
                found[(app, name)].append(Placed(label, name, at))
        return found

    def bodies(
        self, exchange_ids: Sequence[str], *, largest: int | None = None, packed: int = PACKED
    ) -> Iterator[tuple[str, Bodies]]:
        """Yield the bodies of these exchanges in their order, few in memory at once.

        Those that are gone are left out, and with `largest` those of more bytes. Eight megabytes of blanks are a few
        hundred bytes when compressed: each is opened only when it is its turn.
        """
        table, opener = schema.bodies, zstandard.ZstdDecompressor()
        size = func.length(table.c.request) + func.length(table.c.response)
        weigh = select(table.c.exchange, size).where(table.c.exchange.in_(exchange_ids))
        sizes = {name: int(weight) for name, weight in self._database.read(lambda of: of.execute(weigh).all())}
        wanted = [name for name in exchange_ids if name in sizes and (largest is None or sizes[name] <= largest)]
        for some in _parcels(wanted, sizes, packed):
            take = select(table).where(table.c.exchange.in_(some))
            rows = self._database.read(lambda of, take=take: {row.exchange: row for row in of.execute(take)})  # type: ignore[misc]
            for row in (rows[name] for name in some if name in rows):
                if largest is None or _opened_size(row) <= largest:
                    yield row.exchange, _opened(row, opener)


@dataclass(frozen=True, slots=True)
class _Look:
    """One page of a table in the making. `labelled`: whether a row has a label that is wanted; `until`: of time."""

    table: FromClause
    order: Sequence[Column[Any]]
    wanted: Wanted
    labelled: ColumnElement[bool]
    limit: int
    until: float
    window: int

    def page(self, connection: Connection, behind: Place | None) -> Found[Row[Any]]:
        others = self._others()
        if not others:
            rows = list(connection.execute(self._query(behind, self.limit)).all())
            return Found(rows, self._place(rows[-1]) if len(rows) == self.limit else None)
        found: list[Row[Any]] = []
        while True:
            floor = connection.execute(self._floor(behind)).scalar()
            query = self._query(behind, self.limit - len(found)).where(*others)
            if floor is not None:
                query = query.where(self.order[0] >= floor)
            found += connection.execute(query).all()
            if len(found) == self.limit:
                return Found(found, self._place(found[-1]))
            if floor is None:
                return Found(found, None)
            behind = (floor, *[""] * (len(self.order) - 1))
            if time.monotonic() > self.until:
                return Found(found, behind, floor)

    def _place(self, row: Row[Any]) -> Place:
        return tuple(row._mapping[column.name] for column in self.order)  # noqa: SLF001 - SQLAlchemy's public name for it

    def _floor(self, behind: Place | None) -> Select[Any]:
        """Ask where the window ends, None where fewer rows are left: an index alone says so, no row is read."""
        started = self.order[0]
        return select(started).where(*self._within(behind)).order_by(started.desc()).limit(1).offset(self.window - 1)

    def _query(self, behind: Place | None, limit: int) -> Select[Any]:
        query = select(self.table).where(*self._within(behind))
        if behind is not None and any(behind[1:]):
            query = query.where(tuple_(*self.order) < tuple_(*behind))
        return query.order_by(*(column.desc() for column in self.order)).limit(limit)

    def _within(self, behind: Place | None) -> list[ColumnElement[bool]]:
        """What an index carries."""
        wanted, started = self.wanted, self.order[0]
        found: list[ColumnElement[bool]] = []
        if _is_one(wanted):
            found += [self.table.c.app == wanted.app, self.table.c.trajectory == wanted.trajectory]
        if wanted.set is not None:
            # Beside a trajectory not named plainly: SQLite would read the set's index, which has far more rows.
            found.append((func.coalesce(self.table.c.set, "") if _is_one(wanted) else self.table.c.set) == wanted.set)
        if wanted.since is not None:
            found.append(started >= wanted.since)
        if wanted.until is not None:
            found.append(started < wanted.until)
        if behind is not None:
            # Behind a place without names: a window ended there, with all rows of that moment.
            found.append(started <= behind[0] if any(behind[1:]) else started < behind[0])
        return found

    def _others(self) -> list[ColumnElement[bool]]:
        """What is looked for row by row. Named plainly, a column would lead SQLite to its index, not to the order."""
        wanted, columns = self.wanted, self.table.c
        pairs = [(columns.model, wanted.model), (columns.arm, wanted.arm)]
        if not _is_one(wanted):
            pairs += [(columns.app, wanted.app), (columns.trajectory, wanted.trajectory)]
        found: list[ColumnElement[bool]] = [
            func.coalesce(column, "") == value for column, value in pairs if value is not None
        ]
        if wanted.judged is not None:
            found.append(not_(self.labelled) if wanted.judged == "none" else self.labelled)
        return found


def _is_one(wanted: Wanted) -> bool:
    """Whether one trajectory is looked for, whose index needs both names."""
    return wanted.app is not None and wanted.trajectory is not None


def _first(app: str, trajectory: str, behind: Place | None, limit: int) -> Select[Any]:
    table = schema.exchanges
    place = (table.c.started_at, table.c.id)
    query = select(table).where(table.c.app == app, table.c.trajectory == trajectory)
    if behind is not None:
        query = query.where(table.c.started_at >= behind[0], tuple_(*place) > tuple_(*behind))
    return query.order_by(*place).limit(limit)


def _exchange(row: Row[Any]) -> Exchange:
    return Exchange(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it


def _labels(
    connection: Connection, app: str, trajectories: Sequence[str], exchanges: Sequence[str], most: int
) -> list[Label]:
    labels = schema.labels
    newest = labels.c.created_at.desc(), labels.c.feedback_id.desc()
    on_trajectories = select(labels).where(labels.c.app == app, labels.c.trajectory.in_(trajectories))
    on_trajectories = on_trajectories.where(labels.c.exchange.is_(None))
    # The app is looked at here: named in the query, SQLite takes its index and reads all labels of the app.
    on_exchanges = select(labels).where(labels.c.exchange.in_(exchanges))
    rows = [
        row
        for query in (on_trajectories, on_exchanges)
        for row in connection.execute(query.order_by(*newest).limit(most)).all()
    ]
    found = [Label(**row._mapping) for row in rows if row.app == app]  # noqa: SLF001 - as above
    return sorted(found, key=lambda one: (-one.created_at, one.feedback_id))


def _opened_size(row: Row[Any]) -> int:
    return int(zstandard.frame_content_size(row.request) + zstandard.frame_content_size(row.response))


def _opened(row: Row[Any], opener: zstandard.ZstdDecompressor) -> Bodies:
    kept = opener.decompress(row.request), opener.decompress(row.response)
    return Bodies(*kept, row.request_encoding, row.response_encoding, row.response_type)


def _parcels(names: Sequence[str], sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Cut names into runs of at most `most` bytes; one that has more stands alone."""
    some: list[str] = []
    weight = 0
    for name in names:
        if some and weight + sizes[name] > most:
            yield some
            some, weight = [], 0
        some.append(name)
        weight += sizes[name]
    if some:
        yield some


def _any(*where: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a row is there. For EXISTS between ORs, PostgreSQL makes a table of all that are labelled first."""
    return select(literal_column("1")).where(*where).limit(1).scalar_subquery().is_not(None)


def _worth(judged: Judged | None) -> tuple[ColumnElement[bool], ...]:
    labels = schema.labels
    if judged not in ("low", "high"):
        return ()
    return labels.c.metric == "reward", labels.c.value < LOW if judged == "low" else labels.c.value >= LOW
