"""Exchanges, their bodies, the trajectories they belong to and the links between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import zstandard
from msgspec.structs import astuple, fields
from sqlalchemy import (
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    select,
    update,
)

from tfgrpo.store import hours, schema
from tfgrpo.store.distinct import distinct
from tfgrpo.store.engine import Database, insert_new
from tfgrpo.types import Assignment, Bodies, Exchange, Link

LEVEL = 1
"""Of zstd: on JSON of 1 and 13 KB as small as its default, 3, at a quarter less CPU (measured)."""

CHUNK = 500
"""How many ids one statement names; SQLite's limit of variables is far above it."""

_EXCHANGE = tuple(field.name for field in fields(Exchange))
_ASSIGNMENT = tuple(field.name for field in fields(Assignment))
_LINK = tuple(field.name for field in fields(Link))
_BODIES = tuple(column.name for column in schema.bodies.columns)


# Made once: it is asked on the live path, where making it costs twice as much as its answer.
_FIND_LINKS = (
    select(
        schema.links.c.key,
        schema.links.c.exchange,
        schema.links.c.created_at,
        schema.links.c.taken_by,
        schema.links.c.system,
        schema.trajectories,
    )
    .select_from(
        schema.links.join(
            schema.trajectories,
            and_(
                schema.links.c.app == schema.trajectories.c.app,
                schema.links.c.trajectory == schema.trajectories.c.trajectory,
            ),
        )
    )
    .where(schema.links.c.key.in_(bindparam("keys", expanding=True)))
    .order_by(schema.links.c.created_at, schema.links.c.exchange)
)

# The app is compared afterwards: as a condition it would lead SQLite to the index of apps, and through all rows of one.
_UPSTREAMS_OF = (
    select(schema.exchanges.c.app, schema.exchanges.c.completion_id, schema.exchanges.c.upstream)
    .where(schema.exchanges.c.completion_id.in_(bindparam("ids", expanding=True)))
    .order_by(schema.exchanges.c.started_at)
)

_TAKE = (
    update(schema.links)
    .where(schema.links.c.exchange == bindparam("parent"), schema.links.c.taken_by.is_(None))
    .values(taken_by=bindparam("child"))
)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction records. `taken` holds pairs (parent exchange, the exchange that continues it)."""

    exchanges: tuple[tuple[Exchange, Bodies], ...] = ()
    assignments: tuple[Assignment, ...] = ()
    links: tuple[Link, ...] = ()
    taken: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FoundLink:
    """A link with the assignment of its trajectory; `taken`: another exchange continues it already."""

    link: Link
    assignment: Assignment
    taken: bool


class Traffic:
    """What passed through the proxy. Adding a row that is there already changes nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, batch: Batch) -> None:
        """Record the batch in one transaction."""
        assignments = [astuple(one) for one in batch.assignments]
        links = [astuple(one) for one in batch.links]
        exchanges = [astuple(exchange) for exchange, _ in batch.exchanges]
        bodies = _body_rows(batch.exchanges)

        def work(connection: Connection) -> None:
            begun = insert_new(connection, schema.trajectories, _ASSIGNMENT, assignments, told="started_at")
            insert_new(connection, schema.links, _LINK, links)
            new = set(insert_new(connection, schema.exchanges, _EXCHANGE, exchanges, told="id"))
            insert_new(connection, schema.bodies, _BODIES, bodies)
            if batch.taken:
                connection.execute(_TAKE, [{"parent": parent, "child": child} for parent, child in batch.taken])
            # Last: while these rows are held, nothing else is waited for.
            hours.add(connection, [one for one, _ in batch.exchanges if one.id in new], begun)

        self._database.write(work)

    def find_links(self, keys: Sequence[str]) -> list[FoundLink]:
        """Return the links under any of these keys whose trajectory is known, the oldest first."""
        rows = self._database.read(lambda connection: connection.execute(_FIND_LINKS, {"keys": keys}).all())
        return [
            FoundLink(
                Link(row.key, row.app, row.trajectory, row.exchange, row.created_at, row.system),
                _assignment(row),
                row.taken_by is not None,
            )
            for row in rows
        ]

    def assignment(self, app: str, trajectory: str) -> Assignment | None:
        """Return what the trajectory was given at its first request."""
        table = schema.trajectories
        query = select(table).where(table.c.app == app, table.c.trajectory == trajectory)
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else _assignment(row)

    def assignments(self, app: str, trajectories: Sequence[str]) -> dict[str, Assignment]:
        """Return what these trajectories of an app were given, those that are known."""
        table = schema.trajectories
        found: dict[str, Assignment] = {}
        for some in _chunks(trajectories):
            query = select(table).where(table.c.app == app, table.c.trajectory.in_(some))
            rows = self._database.read(lambda connection, query=query: connection.execute(query).all())  # type: ignore[misc]
            found |= {row.trajectory: _assignment(row) for row in rows}
        return found

    def trajectories_of(self, exchange_ids: Sequence[str]) -> dict[tuple[str, str], str]:
        """Return the trajectory of each of these exchanges, by app and id; those that are not there are left out."""
        table = schema.exchanges
        found: dict[tuple[str, str], str] = {}
        for some in _chunks(exchange_ids):
            query = select(table.c.app, table.c.id, table.c.trajectory).where(table.c.id.in_(some))
            rows = self._database.read(lambda connection, query=query: connection.execute(query).all())  # type: ignore[misc]
            found |= {(row.app, row.id): row.trajectory for row in rows}
        return found

    def exchange(self, exchange_id: str) -> Exchange | None:
        """Return one exchange."""
        found = self._exchanges(select(schema.exchanges).where(schema.exchanges.c.id == exchange_id))
        return found[0] if found else None

    def by_completion(self, completion_id: str) -> list[Exchange]:
        """Return the exchanges, of any app, whose upstream gave this id; the oldest first."""
        table = schema.exchanges
        return self._exchanges(select(table).where(table.c.completion_id == completion_id).order_by(table.c.started_at))

    def upstreams_of(self, app: str, ids: Sequence[str]) -> dict[str, str]:
        """Return, for each of these ids that an upstream gave to this app, which one gave it last."""
        rows = self._database.read(lambda connection: connection.execute(_UPSTREAMS_OF, {"ids": ids}).all())
        return {row.completion_id: row.upstream for row in rows if row.app == app}

    def trajectory(self, app: str, trajectory: str) -> list[Exchange]:
        """Return the exchanges of a trajectory in order."""
        table = schema.exchanges
        query = select(table).where(table.c.app == app, table.c.trajectory == trajectory)
        return self._exchanges(query.order_by(table.c.started_at, table.c.id))

    def of_trajectories(self, app: str, trajectories: Sequence[str]) -> dict[str, list[Exchange]]:
        """Return the exchanges of each of these trajectories of an app, in order."""
        table = schema.exchanges
        found: dict[str, list[Exchange]] = defaultdict(list)
        for some in _chunks(trajectories):
            query = select(table).where(table.c.app == app, table.c.trajectory.in_(some))
            for exchange in self._exchanges(query.order_by(table.c.started_at, table.c.id)):
                found[exchange.trajectory].append(exchange)
        return found

    def named(self, set_name: str, trajectory: str, *, since: float) -> list[Exchange]:
        """Return the exchanges of a trajectory of a set, whatever its app, that began at `since` or later, in order."""
        table = schema.exchanges
        query = select(table).where(
            table.c.set == set_name, table.c.started_at >= since, table.c.trajectory == trajectory
        )
        return self._exchanges(query.order_by(table.c.started_at, table.c.id))

    def bodies(self, exchange_ids: Sequence[str]) -> dict[str, Bodies]:
        """Return the bodies of these exchanges; those that are gone are left out."""
        table = schema.bodies
        decompress = zstandard.ZstdDecompressor().decompress
        found: dict[str, Bodies] = {}
        for some in _chunks(exchange_ids):
            query = select(table).where(table.c.exchange.in_(some))
            rows = self._database.read(lambda connection, query=query: connection.execute(query).all())  # type: ignore[misc]
            for row in rows:
                found[row.exchange] = Bodies(
                    decompress(row.request),
                    decompress(row.response),
                    row.request_encoding,
                    row.response_encoding,
                    row.response_type,
                )
        return found

    def page(
        self,
        *,
        limit: int,
        app: str | None = None,
        set_name: str | None = None,
        trajectory: str | None = None,
    ) -> list[Exchange]:
        """Return the newest exchanges, the newest first; `browsing` turns pages."""
        table = schema.exchanges
        query = select(table)
        for column, value in ((table.c.app, app), (table.c.set, set_name), (table.c.trajectory, trajectory)):
            if value is not None:
                query = query.where(column == value)
        return self._exchanges(query.order_by(table.c.started_at.desc(), table.c.id.desc()).limit(limit))

    def sets(self) -> list[str]:
        """Return the names of the sets that traffic was recorded under."""
        query = distinct(schema.trajectories.c.set)
        return sorted(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def _exchanges(self, query: Select[Any]) -> list[Exchange]:
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [Exchange(**row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name for it


def _body_rows(exchanges: Sequence[tuple[Exchange, Bodies]]) -> list[tuple[Any, ...]]:
    """Compress all bodies of a batch in one call: each call lets go of the interpreter, which the live path runs in."""
    exchanges = [one for one in exchanges if one[0].record == "full"]
    if not exchanges:
        return []
    raw = [body for _, kept in exchanges for body in (kept.request, kept.response)]
    compressor = zstandard.ZstdCompressor(level=LEVEL)
    if any(raw):
        filled = iter(compressor.multi_compress_to_buffer([body for body in raw if body]))
    packed = [next(filled).tobytes() if body else compressor.compress(b"") for body in raw]
    return [
        (
            exchange.id,
            packed[2 * place],
            packed[2 * place + 1],
            kept.request_encoding,
            kept.response_encoding,
            kept.response_type,
            exchange.started_at,
        )
        for place, (exchange, kept) in enumerate(exchanges)
    ]


def _assignment(row: Row[Any]) -> Assignment:
    return Assignment(**{name: row._mapping[name] for name in _ASSIGNMENT})  # noqa: SLF001 - as above


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]
