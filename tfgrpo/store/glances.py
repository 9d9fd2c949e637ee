"""What lists show: sets, versions and runs without what is long in them, read in one query each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import exists, func, or_, select

from tfgrpo.store import schema
from tfgrpo.store.engine import Database
from tfgrpo.store.runs import RunStatus
from tfgrpo.types import FIRST_DRAFT


@dataclass(frozen=True, slots=True)
class RunGlance:
    """One training run; `version` is what it made, None for nothing, `proven` that version's status."""

    id: str
    set: str
    status: RunStatus
    progress: Mapping[str, Any]
    started_at: float
    ended_at: float | None
    version: int | None
    proven: str | None


@dataclass(frozen=True, slots=True)
class NewestVersion:
    """The newest version of a set. `review`: what a person said of it last, "approve" or "reject".

    `deployed`: it is, or was once, live or a candidate.
    """

    set: str
    version: int
    status: str
    run: str | None
    review: str | None
    deployed: bool


class Glances:
    """The lists of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def runs(self, limit: int) -> list[RunGlance]:
        """Return the newest runs. Two versions of one run are one: the newer."""
        runs, made = schema.runs, schema.versions
        columns = runs.c.id, runs.c.set, runs.c.status, runs.c.progress, runs.c.started_at, runs.c.ended_at
        newest = select(*columns).order_by(runs.c.started_at.desc()).limit(limit)
        rows = self._database.read(lambda connection: connection.execute(newest).all())
        named = select(made.c.run, made.c.version, made.c.status).where(made.c.run.in_([row.id for row in rows]))
        found = self._database.read(lambda connection: connection.execute(named).all())
        of_run = {run: (version, status) for run, version, status in found}
        return [
            RunGlance(
                row.id,
                row.set,
                row.status,
                json.loads(row.progress),
                row.started_at,
                row.ended_at,
                *of_run.get(row.id, (None, None)),
            )
            for row in rows
        ]

    def newest(self) -> list[NewestVersion]:
        """Return the newest version of each set that has one, by the names of the sets."""
        made, said = schema.versions, schema.history
        last = select(made.c.set, func.max(made.c.version).label("version")).where(made.c.version < FIRST_DRAFT)
        mine = last.group_by(made.c.set).subquery()
        deployed = exists().where(
            said.c.set == made.c.set, or_(said.c.live == made.c.version, said.c.candidate == made.c.version)
        )
        review = (
            select(said.c.action)
            .where(said.c.set == made.c.set, said.c.version == made.c.version)
            .where(said.c.action.in_(("approve", "reject")))
            .order_by(said.c.number.desc())
            .limit(1)
            .scalar_subquery()
        )
        query = (
            select(made.c.set, made.c.version, made.c.status, made.c.run, review, deployed)
            .join(mine, (made.c.set == mine.c.set) & (made.c.version == mine.c.version))
            .order_by(made.c.set)
        )
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [NewestVersion(row.set, row.version, row.status, row.run, row[4], bool(row[5])) for row in rows]

    def versions(self) -> dict[str, int]:
        """Return how many versions each set has."""
        made = schema.versions
        query = select(made.c.set, func.count()).where(made.c.version < FIRST_DRAFT).group_by(made.c.set)
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return {row[0]: int(row[1]) for row in rows}
