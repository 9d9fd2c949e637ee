"""Training runs and what they learned from, and the leases that keep two of a kind from running at once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from tfgrpo.errors import NotFound
from tfgrpo.store import schema
from tfgrpo.store.engine import Database
from tfgrpo.store.engine import insert as upsert

RunStatus = Literal["running", "finished", "stopped", "failed"]

_STOP = "stop "
_STOP_SECONDS = 600.0
"""How long a wish that a run stop is kept. Runs look every few seconds."""


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: what it was asked, how far it is, what came of it."""

    id: str
    set: str
    status: RunStatus
    arguments: Mapping[str, Any]
    progress: Mapping[str, Any]
    result: Mapping[str, Any]
    started_at: float
    ended_at: float | None


class Runs:
    """The training runs of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(self, run_id: str, *, set_name: str, arguments: Mapping[str, Any], started_at: float) -> None:
        """Record that a run began."""
        row = {
            "id": run_id,
            "set": set_name,
            "status": "running",
            "arguments": json.dumps(dict(arguments)),
            "progress": "{}",
            "result": "{}",
            "started_at": started_at,
        }
        self._database.write(lambda connection: connection.execute(insert(schema.runs).values(**row)))

    def progress(self, run_id: str, progress: Mapping[str, Any]) -> None:
        """Record how far a run is."""
        mine = update(schema.runs).where(schema.runs.c.id == run_id).values(progress=json.dumps(dict(progress)))
        self._database.write(lambda connection: connection.execute(mine))

    def finish(self, run_id: str, *, status: RunStatus, result: Mapping[str, Any], used: Sequence[str] = ()) -> None:
        """Record the end of a run; `used` are the trajectories it learned from."""
        runs, learned_from = schema.runs, schema.learned_from
        mine = update(runs).where(runs.c.id == run_id)
        ended = mine.values(status=status, result=json.dumps(dict(result)), ended_at=time.time())

        def work(connection: Connection) -> None:
            connection.execute(ended)
            if not used:
                return
            set_name = connection.execute(select(runs.c.set).where(runs.c.id == run_id)).scalar_one()
            connection.execute(delete(learned_from).where(learned_from.c.run == run_id))
            rows = [{"run": run_id, "trajectory": one, "set": set_name} for one in dict.fromkeys(used)]
            connection.execute(insert(learned_from), rows)

        self._database.write(work, durable=True)

    def run(self, run_id: str) -> Run:
        """Return one run.

        Raises:
            NotFound: There is none with this id.
        """
        query = select(schema.runs).where(schema.runs.c.id == run_id)
        row = self._database.read(lambda connection: connection.execute(query).one_or_none())
        if row is None:
            raise NotFound(f"there is no run {run_id!r}; `tfgrpo runs list` shows those there are")
        return _run(row)

    def list(self, set_name: str | None = None, *, most: int | None = None) -> list[Run]:
        """Return the runs, of one set or all, the newest first; at most so many."""
        query = select(schema.runs).order_by(schema.runs.c.started_at.desc()).limit(most)
        if set_name is not None:
            query = query.where(schema.runs.c.set == set_name)
        return [_run(row) for row in self._database.read(lambda connection: connection.execute(query).all())]

    def begun_by(self, host: str, pid: int, *, since: float) -> str | None:
        """Return the run that a process began."""
        table = schema.runs
        query = select(table.c.id, table.c.arguments).where(table.c.started_at >= since)
        rows = self._database.read(lambda connection: connection.execute(query).all())
        for run_id, arguments in rows:
            told = json.loads(arguments)
            if (told.get("host"), told.get("pid")) == (host, pid):
                return str(run_id)
        return None

    def ask_to_stop(self, run_id: str) -> None:
        """Leave the wish that a run end. It is a lease, and so goes away by itself."""
        self.acquire(_STOP + run_id, run_id, _STOP_SECONDS)

    def asked_to_stop(self, run_id: str) -> bool:
        """Whether someone wants a run to end."""
        return self.holder(_STOP + run_id) is not None

    def learned_from(self, run_ids: Sequence[str]) -> set[str]:
        """Return the trajectories that these runs learned from."""
        query = select(schema.learned_from.c.trajectory).where(schema.learned_from.c.run.in_(run_ids))
        return set(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def acquire(self, name: str, holder: str, ttl: float) -> bool:
        """Take or renew a lease for `ttl` seconds; False when another holder has it."""
        leases, now = schema.leases, time.time()
        # One that would run for longer than any is taken for is from before a clock was set back.
        past, ahead = leases.c.expires_at < now, leases.c.expires_at > now + 2 * ttl
        free = or_(past, ahead, leases.c.holder == holder)
        row = {"name": name, "holder": holder, "expires_at": now + ttl}

        def work(connection: Connection) -> bool:
            taken = upsert(connection, leases).values(**row)
            taken = taken.on_conflict_do_update(index_elements=["name"], set_=row, where=free)
            return connection.execute(taken.returning(leases.c.name)).first() is not None

        return self._database.write(work)

    def holder(self, name: str) -> str | None:
        """Return who holds a lease now."""
        leases = schema.leases
        query = select(leases.c.holder).where(leases.c.name == name, leases.c.expires_at >= time.time())
        return self._database.read(lambda connection: connection.execute(query).scalar())

    def release(self, name: str, holder: str) -> None:
        """Give a lease back; nothing happens when another holder has it."""
        leases = schema.leases
        mine = delete(leases).where(leases.c.name == name, leases.c.holder == holder)
        self._database.write(lambda connection: connection.execute(mine))


def _run(row: Row[Any]) -> Run:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    for name in ("arguments", "progress", "result"):
        values[name] = json.loads(values[name])
    return Run(**values)
