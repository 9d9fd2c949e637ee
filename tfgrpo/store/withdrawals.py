"""Evidence that was withdrawn: it teaches no more, and the entries that rested on it are deployed no more.

What rests on it is found by provenance: an entry names the groups of its lessons, a run the trajectories it learned
from. Where no run says which ones of a group it learned from (tasks run afresh, imported versions), all of it counts.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from sqlalchemy import Connection, Row, insert, select

from tfgrpo import withdrawal
from tfgrpo.errors import Conflict, NotFound
from tfgrpo.store import history, pending, schema, versions
from tfgrpo.store.engine import Database, insert_new
from tfgrpo.store.teaching import judged_by
from tfgrpo.types import Deployment, Experience, Pending, Version
from tfgrpo.withdrawal import Withdrawal, group_of

Withdrawable: TypeAlias = Literal["exchange", "app", "source"]
"""What can be withdrawn: the trajectory of an exchange; all traffic of an app; all trajectories that labels of one
source judge, or the group that entries name among their sources."""

AT_ONCE: Final = 10_000
"""So many rows are in memory together."""

Trajectory: TypeAlias = tuple[str, str]
"""An app and a trajectory of it."""


class Done(msgspec.Struct, frozen=True):
    """A withdrawal as it was made in one set: the new version, and the deployment that gives it to live requests."""

    plan: Withdrawal
    version: Version | None = None
    deployment: Deployment | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "set": self.plan.set,
            "base": self.plan.base,
            "version": None if self.version is None else self.version.version,
            "gone": [{"id": one.id, "text": one.text} for one in self.plan.gone],
            "restored": [{"id": a.id, "before": a.text, "after": b.text} for a, b in self.plan.restored],
            "versions": list(self.plan.versions),
            "live": self.plan.live,
            "candidate": self.plan.candidate,
            "revision": None if self.deployment is None else self.deployment.revision,
        }


class _Evidence(msgspec.Struct, frozen=True):
    """What is withdrawn: whole groups, and of others these trajectories; `row` is what is kept of it."""

    row: Mapping[str, str]
    groups: frozenset[str] = frozenset()
    trajectories: Mapping[str, frozenset[Trajectory]] = msgspec.field(default_factory=dict)


class Withdrawals:
    """All withdrawals of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def plan(self, kind: Withdrawable, name: str) -> list[Withdrawal]:
        """Return what a withdrawal would come to, set by set; none for a set with no entry that rests on it.

        Raises:
            NotFound: There is no such exchange, app or source.
        """
        return self._database.read(lambda connection: _plans(connection, _evidence(connection, kind, name)))

    def withdraw(self, kind: Withdrawable, name: str, *, reason: str, actor: str, deploy: bool) -> list[Done]:
        """Withdraw evidence: it teaches no more, and each set gets the version without what rests on it. Pending
        lessons that do go at once.

        `deploy` gives it to live requests, where they have such an entry. A candidate that has one is taken out and not
        replaced: its experiment is over. Asked again, it finds the version that it made.

        Raises:
            NotFound: There is no such exchange, app or source.
            UsageError: The reason is too long.
        """
        history.check_said(reason=reason, actor=actor)

        def work(connection: Connection) -> list[Done]:
            found = _evidence(connection, kind, name)
            values = {**found.row, "reason": reason, "actor": actor, "created_at": time.time()}
            insert_new(connection, schema.withdrawals, tuple(values), [tuple(values.values())])
            why = f"{kind} {name} withdrawn" + (f": {reason}" if reason else "")
            plans = _plans(connection, found)
            learned = _learned(connection, found)
            pending.drop(connection, lambda of, lesson: _resting(found, learned.get(of, {}))(_as_entry(lesson)))
            return [_done(connection, plan, reason=why, actor=actor, deploy=deploy) for plan in plans]

        return self._database.write(work, durable=True)

    def all(self) -> list[dict[str, Any]]:
        """Return everything that was withdrawn, the newest first."""
        table = schema.withdrawals
        rows = self._database.read(lambda c: c.execute(select(table).order_by(table.c.created_at.desc())).all())
        return [dict(row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name for it

    def groups(self) -> frozenset[str]:
        """Return the names of the sources that were withdrawn: tasks with such a key teach no more."""
        return frozenset(one["name"] for one in self.all() if one["kind"] == "source")

    def entries(self) -> dict[str, frozenset[withdrawal.Said]]:
        """Return the entries that were withdrawn, as they were then, by set."""
        table = schema.withdrawn_entries
        rows = self._database.read(lambda connection: connection.execute(select(table)).all())
        found: dict[str, set[withdrawal.Said]] = defaultdict(set)
        for row in rows:
            found[row.set].add((row.entry, row.text))
        return {name: frozenset(some) for name, some in found.items()}

    def remaining(self, version: Version) -> tuple[Version, tuple[str, ...]]:
        """Return a version without the entries that were withdrawn, as requests get it, and the ids of those."""
        known = self._database.read(lambda connection: said(connection, version.set))
        library, gone = withdrawal.remaining(version.library, known)
        return msgspec.structs.replace(version, library=library), gone

    def refuses(self, version: Version) -> bool:
        """Whether a deployment of the version would be refused for what was withdrawn."""
        return bool(self._database.read(lambda connection: held(connection, version)))


def said(connection: Connection, set_name: str) -> frozenset[withdrawal.Said]:
    """Return the entries of a set that were withdrawn, as they were then."""
    table = schema.withdrawn_entries
    rows = connection.execute(select(table.c.entry, table.c.text).where(table.c.set == set_name))
    return frozenset((row.entry, row.text) for row in rows)


def held(connection: Connection, version: Version) -> tuple[str, ...]:
    """Return the ids of the entries of a version that rest on what was withdrawn."""
    return withdrawal.holds(version.library, said(connection, version.set))


def check(connection: Connection, version: Version) -> None:
    """Raise Conflict when a version may not be deployed, for an entry of it was withdrawn."""
    if ids := held(connection, version):
        raise Conflict(
            f"version {version.version} of {version.set!r} rests on evidence that was withdrawn (entries "
            f"{', '.join(ids)}): deploy the version that the withdrawal made, or a later one"
        )


def _done(connection: Connection, plan: Withdrawal, *, reason: str, actor: str, deploy: bool) -> Done:
    fresh = plan.said - said(connection, plan.set)
    if fresh:
        rows = [{"set": plan.set, "entry": id_, "text": text} for id_, text in sorted(fresh)]
        connection.execute(insert(schema.withdrawn_entries), rows)
    made = None if plan.base is None else _version(connection, plan, reason)
    current = next(iter(history.deployments(connection, plan.set)), None)
    entries = sorted({id_ for id_, _ in plan.said})
    if deploy and current is not None and (plan.live or plan.candidate):
        replacing = _replaced(history.deployment(current), plan, made, reason=reason, actor=actor)
        history.deployed(connection, replacing, undone=current.effective, entries=entries)
        return Done(plan, made, replacing)
    if fresh:
        number = None if made is None else made.version
        history.said(connection, plan.set, "withdraw", version=number, reason=reason, actor=actor, entries=entries)
    return Done(plan, made)


def _version(connection: Connection, plan: Withdrawal, reason: str) -> Version:
    """Store the version without what was withdrawn, or return it where it was made before."""
    existing = versions.all_of(connection, plan.set)
    for one in existing:
        if one.parent == plan.base and one.library.experiences == plan.library.experiences:
            return one
    base = next(one for one in existing if one.version == plan.base)
    made = Version(
        set=plan.set,
        version=existing[-1].version + 1,
        library=plan.library,
        status="unproven",
        created_at=time.time(),
        parent=base.version,
        policy_model=base.policy_model,
        # What is less than what live requests get already needs no further approval; anything else does.
        run=None if plan.live else base.run,
        note=reason,
    )
    versions.put(connection, made)
    return made


def _replaced(current: Deployment, plan: Withdrawal, made: Version | None, *, reason: str, actor: str) -> Deployment:
    """Return the deployment that takes the place of `current`. It acts on the next request of every trajectory."""
    candidate = None if plan.candidate else current.candidate
    return msgspec.structs.replace(
        current,
        revision=current.revision + 1,
        live=made.version if plan.live and made is not None else current.live,
        candidate=candidate,
        shares={arm: share for arm, share in current.shares.items() if arm != "candidate" or candidate is not None},
        action="withdraw",
        reason=reason,
        actor=actor,
        created_at=time.time(),
        effective=current.revision + 1,
    )


def _plans(connection: Connection, found: _Evidence) -> list[Withdrawal]:
    names = connection.execute(select(schema.versions.c.set).distinct()).scalars().all()
    learned = _learned(connection, found)
    plans = []
    for name in sorted(names):
        all_versions = versions.all_of(connection, name)
        current = next(iter(history.deployments(connection, name)), None)
        live, candidate = (None, None) if current is None else (current.live, current.candidate)
        rests = _resting(found, learned.get(name, {}))
        plan = withdrawal.planned(all_versions, rests, live=live, candidate=candidate) if all_versions else None
        plans += [] if plan is None else [plan]
    return plans


def _resting(found: _Evidence, learned: Mapping[str, set[Trajectory]]) -> withdrawal.Rests:
    def rests(entry: Experience) -> bool:
        for source in entry.sources:
            group = group_of(source)
            withdrawn = found.trajectories.get(group, frozenset())
            # A run that says which trajectories of the group it learned from is believed; else it may have been any.
            used = learned.get(group) or withdrawn
            if group in found.groups or source in found.groups or used & withdrawn:
                return True
        return False

    return rests


def _as_entry(lesson: Pending) -> Experience:
    """Return a pending lesson as an entry that rests on all that backs it."""
    return Experience("", lesson.text, (*lesson.sources, *lesson.backing))


def _learned(connection: Connection, found: _Evidence) -> dict[str, dict[str, set[Trajectory]]]:
    """Return, by set and group, the trajectories that runs of the set say they learned from."""
    used, table = schema.learned_from, schema.trajectories
    learned: dict[str, dict[str, set[Trajectory]]] = defaultdict(lambda: defaultdict(set))
    query = select(used.c.set, table.c.group, table.c.app, table.c.trajectory)
    query = query.select_from(used.join(table, used.c.trajectory == table.c.trajectory))
    for row in _of_groups(connection, query, found.trajectories):
        learned[row.set][row.group].add((row.app, row.trajectory))
    return learned


def _evidence(connection: Connection, kind: Withdrawable, name: str) -> _Evidence:
    taught = _groups(connection)
    table = schema.trajectories
    if kind == "exchange":
        return _of_exchange(connection, name)
    row = {"kind": kind, "name": name, "app": "", "trajectory": ""}
    if kind == "app":
        known = select(table.c.app).where(table.c.app == name).limit(1)
        if connection.execute(known).first() is None:
            raise NotFound(f"there is no traffic of an app {name!r}; `GET /admin/api/exchanges` names the app of each")
        query = select(table.c.group, table.c.app, table.c.trajectory).where(table.c.app == name)
        return _Evidence(row, trajectories=_by_group(_of_groups(connection, query, taught)))
    told = schema.labels.c.source == name
    whole = frozenset({name}) & (taught | _sources(connection))
    if not whole and connection.execute(select(schema.labels.c.source).where(told).limit(1)).first() is None:
        raise NotFound(
            f"no label has the source {name!r}, and no entry names it among its sources; `tfgrpo sets show S@V --json` "
            "names those of its entries"
        )
    judged = judged_by(told).subquery()
    query = select(table.c.group, table.c.app, table.c.trajectory)
    query = query.select_from(
        table.join(judged, (table.c.app == judged.c.app) & (table.c.trajectory == judged.c.trajectory))
    )
    row["name"] = group_of(name) if whole else name
    return _Evidence(row, frozenset(map(group_of, whole)), _by_group(_of_groups(connection, query, taught)))


def _of_exchange(connection: Connection, name: str) -> _Evidence:
    table = schema.exchanges
    query = select(table.c.app, table.c.trajectory, table.c.group).where(table.c.id == name)
    found = connection.execute(query).one_or_none()
    if found is None:
        raise NotFound(f"there is no exchange {name!r}; `GET /admin/api/exchanges` lists those there are")
    row = {"kind": "exchange", "name": name, "app": found.app, "trajectory": found.trajectory}
    return _Evidence(row, trajectories={found.group: frozenset({(found.app, found.trajectory)})})


def _sources(connection: Connection) -> frozenset[str]:
    """Return what the entries of all versions, and lessons that are pending, name as their sources."""
    names = connection.execute(select(schema.versions.c.set).distinct()).scalars().all()
    libraries = (one.library for name in names for one in versions.all_of(connection, name))
    named = frozenset(source for library in libraries for entry in library.experiences for source in entry.sources)
    return named | pending.sources(connection)


def _groups(connection: Connection) -> frozenset[str]:
    return frozenset(map(group_of, _sources(connection)))


def _of_groups(connection: Connection, query: Any, groups: Collection[str]) -> Iterator[Row[Any]]:
    """Read through all rows once and yield those of the groups: no index leads to a group."""
    if groups:
        rows = connection.execute(query.execution_options(yield_per=AT_ONCE))
        yield from (row for row in rows if row.group in groups)


def _by_group(rows: Iterable[Row[Any]]) -> dict[str, frozenset[Trajectory]]:
    found: dict[str, set[Trajectory]] = defaultdict(set)
    for row in rows:
        found[row.group].add((row.app, row.trajectory))
    return {group: frozenset(some) for group, some in found.items()}
