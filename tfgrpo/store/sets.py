"""Experience sets: their versions, and which of them live requests get. The history is append-only."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, func, insert, select, text, update

from tfgrpo.errors import Conflict, NotFound, UsageError
from tfgrpo.library import Limits
from tfgrpo.store import deployable, schema
from tfgrpo.store.engine import Database
from tfgrpo.types import EMPTY_VERSION, FIRST_DRAFT, Deployment, Library, Version, VersionStatus

DRAFT_SECONDS = 86_400.0
"""A draft as old as this was left behind by a run that was killed."""


class Sets:
    """All experience sets of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> list[str]:
        """Return the sets that have a version or recorded traffic."""
        made, seen = schema.versions.c.set, schema.trajectories.c.set
        query = select(made).where(schema.versions.c.version < FIRST_DRAFT).union(select(seen).where(seen.is_not(None)))
        return sorted(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def versions(self, set_name: str) -> list[Version]:
        """Return the versions of a set in order; none for a set that has none."""
        return self._database.read(lambda connection: _versions(connection, set_name))

    def version(self, set_name: str, version: int) -> Version:
        """Return one version; 0 is the empty library of any set.

        Raises:
            NotFound: The set has no such version.
        """
        return self._database.read(lambda connection: _find(connection, set_name, version))

    def lineage(self, set_name: str, version: int) -> list[Version]:
        """Return a version and the versions it was made from, itself first.

        Raises:
            NotFound: The set has no such version.
        """
        line = [self.version(set_name, version)]
        while line[-1].parent:
            line.append(self.version(set_name, line[-1].parent))
        return line

    def latest(self, set_name: str) -> Version | None:
        """Return the newest version of a set."""
        return next(iter(self.versions(set_name)[-1:]), None)

    def add_version(
        self,
        set_name: str,
        library: Library | Callable[[Sequence[Version]], Library],
        *,
        status: VersionStatus,
        parent: int | None = None,
        policy_model: str | None = None,
        run: str | None = None,
        note: str = "",
    ) -> Version:
        """Store a library as the next version of a set and return it.

        A function is called with the versions so far, in the same transaction: so fresh ids are given once.

        Raises:
            NotFound: `parent` does not exist.
            UsageError: `parent` is a draft; or an entry that the set did not have before cannot be a lesson.
        """

        def work(connection: Connection) -> Version:
            if parent is not None:
                _find_no_draft(connection, set_name, parent)
            versions = _versions(connection, set_name)
            kept = library(versions) if callable(library) else library
            deployable.check_entries(kept, but={entry.text for one in versions for entry in one.library.experiences})
            made = Version(
                set=set_name,
                version=max((one.version for one in versions), default=EMPTY_VERSION) + 1,
                library=kept,
                status=status,
                created_at=time.time(),
                parent=parent,
                policy_model=policy_model,
                run=run,
                note=note,
            )
            row = {name: getattr(made, name) for name in made.__struct_fields__} | {"library": _encoded(kept)}
            connection.execute(insert(schema.versions).values(**row))
            _touch(connection)
            return made

        return self._database.write(work, durable=True)

    def add_draft(self, set_name: str, library: Library) -> int:
        """Store a library under test and return the number by which a request can pin it: at least `FIRST_DRAFT`.

        A draft is in no list of versions, is no parent and cannot be deployed. Its number is never given again, for
        proxies remember what a version says. Drafts that killed runs left behind are deleted.
        """

        def work(connection: Connection) -> int:
            number = FIRST_DRAFT + _count(connection, "drafts")
            made = Version(set_name, number, library, "draft", time.time())
            row = {name: getattr(made, name) for name in made.__struct_fields__} | {"library": _encoded(library)}
            connection.execute(insert(schema.versions).values(**row))
            old = schema.versions.c.created_at < made.created_at - DRAFT_SECONDS
            connection.execute(delete(schema.versions).where(schema.versions.c.version >= FIRST_DRAFT, old))
            return number

        return self._database.write(work, durable=True)

    def drop_drafts(self, set_name: str, drafts: Sequence[int]) -> None:
        """Delete drafts; what is no draft stays."""
        table = schema.versions
        those = table.c.set == set_name, table.c.version.in_(drafts), table.c.version >= FIRST_DRAFT
        self._database.write(lambda connection: connection.execute(delete(table).where(*those)))

    def set_status(self, set_name: str, version: int, status: VersionStatus, note: str = "") -> None:
        """Record what a comparison said of a version.

        Raises:
            NotFound: The set has no such version.
        """

        def work(connection: Connection) -> None:
            _find(connection, set_name, version)
            table = schema.versions
            mine = table.c.set == set_name, table.c.version == version
            connection.execute(update(table).where(*mine).values(status=status, note=note))
            _touch(connection)

        self._database.write(work, durable=True)

    def next_id(self, set_name: str) -> int:
        """Return the number of the next experience id: ids are unique within a set, over all its versions."""
        return max((version.library.next_id for version in self.versions(set_name)), default=1)

    def deployment(self, set_name: str) -> Deployment | None:
        """Return the current deployment of a set."""
        return next(iter(self.history(set_name)), None)

    def deployments(self) -> list[Deployment]:
        """Return the current deployment of every set that has one."""
        table = schema.deployments
        newest = select(table.c.set, func.max(table.c.revision).label("revision")).group_by(table.c.set).subquery()
        query = select(table).join(newest, (table.c.set == newest.c.set) & (table.c.revision == newest.c.revision))
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [_deployment(row) for row in rows]

    def history(self, set_name: str) -> list[Deployment]:
        """Return the deployments of a set, the newest first."""
        return [_deployment(row) for row in self._database.read(lambda connection: _rows(connection, set_name))]

    def newest_rollback(self, set_name: str) -> int:
        """Return the revision of the newest rollback of a set; 0 if there was none."""
        return next((one.revision for one in self.history(set_name) if one.action == "rollback"), 0)

    def deploy(
        self,
        set_name: str,
        *,
        live: int | None,
        candidate: int | None = None,
        shares: Mapping[str, float] | None = None,
        reason: str,
        actor: str,
        if_revision: int | None = None,
        limits: Limits | None = None,
    ) -> Deployment:
        """Make a new deployment of a set; what is not named is unset. `limits` bounds the libraries it may give whole.

        Raises:
            NotFound: The set, or a version, does not exist.
            UsageError: The shares or the candidate do not fit, `field` names it; or a version is a draft, or holds an
                entry that cannot be a lesson; or a library is over `limits`.
            Conflict: The current revision is not `if_revision`.
        """
        shares = dict(shares or {})
        deployable.check_shares(live, candidate, shares)

        def work(connection: Connection) -> Deployment:
            _check_set(connection, set_name)
            for arm, version in (("live", live), ("candidate", candidate)):
                if version is not None:
                    found = _find_no_draft(connection, set_name, version)
                    deployable.check_size(found, limits, arm)
                    deployable.check_entries(found.library)
            revision = _next_revision(connection, set_name, if_revision)
            made = Deployment(
                set=set_name,
                revision=revision,
                live=live,
                candidate=candidate,
                shares=shares,
                action="deploy",
                reason=reason,
                actor=actor,
                created_at=time.time(),
                effective=revision,
            )
            return _insert(connection, made, undone=None)

        return self._database.write(work, durable=True)

    def rollback(self, set_name: str, *, reason: str, actor: str, if_revision: int | None = None) -> Deployment:
        """Restore the newest earlier deployment that was not itself rolled back, as a new entry of the history.

        Raises:
            NotFound: The set does not exist.
            Conflict: There is no earlier deployment to go back to, or the current revision is not `if_revision`.
        """

        def work(connection: Connection) -> Deployment:
            _check_set(connection, set_name)
            _next_revision(connection, set_name, if_revision)
            rows = _rows(connection, set_name)
            restored = _restorable(rows, set_name)
            made = Deployment(
                set=set_name,
                revision=rows[0].revision + 1,
                live=restored.live,
                candidate=restored.candidate,
                shares=json.loads(restored.shares),
                action="rollback",
                reason=reason,
                actor=actor,
                created_at=time.time(),
                effective=restored.revision,
            )
            return _insert(connection, made, undone=rows[0].effective)

        return self._database.write(work, durable=True)

    def restorable(self, set_name: str) -> Deployment:
        """Return the deployment that a rollback would restore now.

        Raises:
            NotFound: The set does not exist.
            Conflict: There is no earlier deployment to go back to.
        """

        def work(connection: Connection) -> Deployment:
            _check_set(connection, set_name)
            return _deployment(_restorable(_rows(connection, set_name), set_name))

        return self._database.read(work)

    def drop_candidate(self, set_name: str, *, reason: str, actor: str, if_revision: int) -> Deployment:
        """Go on without the candidate: live and the share of control stay as they are.

        It stands in the history as a rollback: the candidate's trajectories get live with their next request.

        Raises:
            NotFound: The set does not exist.
            Conflict: The current revision is not `if_revision`.
        """

        def work(connection: Connection) -> Deployment:
            _check_set(connection, set_name)
            revision = _next_revision(connection, set_name, if_revision)
            current = _deployment(_rows(connection, set_name)[0])
            made = msgspec.structs.replace(
                current,
                revision=revision,
                candidate=None,
                shares={arm: share for arm, share in current.shares.items() if arm != "candidate"},
                action="rollback",
                reason=reason,
                actor=actor,
                created_at=time.time(),
                effective=revision,
            )
            return _insert(connection, made, undone=current.effective)

        return self._database.write(work, durable=True)

    def stamp(self) -> int:
        """Return a number that changes whenever a version, its status or a deployment does."""
        query = select(schema.meta.c.value).where(schema.meta.c.key == "sets")
        return int(self._database.read(lambda connection: connection.execute(query).scalar()) or 0)


def _check_set(connection: Connection, set_name: str) -> None:
    for table in (schema.versions, schema.trajectories):
        if connection.execute(select(table.c.set).where(table.c.set == set_name).limit(1)).first():
            return
    raise NotFound(f"there is no set {set_name!r}; `tfgrpo sets list` shows those there are")


def _versions(connection: Connection, set_name: str) -> list[Version]:
    table = schema.versions
    mine = table.c.set == set_name, table.c.version < FIRST_DRAFT
    query = select(table).where(*mine).order_by(table.c.version)
    return [_version(row) for row in connection.execute(query)]


def _find(connection: Connection, set_name: str, version: int) -> Version:
    table = schema.versions
    query = select(table).where(table.c.set == set_name, table.c.version == version)
    row = connection.execute(query).one_or_none() if 0 <= version < 2**31 else None
    if row is not None:
        return _version(row)
    if version == EMPTY_VERSION:
        return Version(set_name, EMPTY_VERSION, Library(), "by hand", 0.0, note="the empty library")
    newest = max((one.version for one in _versions(connection, set_name)), default=EMPTY_VERSION)
    raise NotFound(f"set {set_name!r} has no version {version}; the newest is {newest}")


def _find_no_draft(connection: Connection, set_name: str, version: int) -> Version:
    found = _find(connection, set_name, version)
    if found.status == "draft":
        raise UsageError(f"version {version} is a draft under test; name the version that its run stored")
    return found


def _next_revision(connection: Connection, set_name: str, expected: int | None) -> int:
    rows = _rows(connection, set_name)
    current = rows[0].revision if rows else 0
    if expected is not None and expected != current:
        raise Conflict(f"set {set_name!r} is at revision {current}, not {expected}; read it again and decide anew")
    return current + 1


def _rows(connection: Connection, set_name: str) -> list[Row[Any]]:
    table = schema.deployments
    query = select(table).where(table.c.set == set_name).order_by(table.c.revision.desc())
    return list(connection.execute(query).all())


def _restorable(rows: list[Row[Any]], set_name: str) -> Row[Any]:
    undone = {row.undone for row in rows} | {rows[0].effective if rows else None}
    for row in rows:
        if row.action == "deploy" and row.revision not in undone and row.revision < rows[0].effective:
            return row
    raise Conflict(f"set {set_name!r} has no earlier deployment to roll back to; to inject nothing, deploy live: null")


def _insert(connection: Connection, made: Deployment, *, undone: int | None) -> Deployment:
    row = {name: getattr(made, name) for name in made.__struct_fields__} | {"shares": json.dumps(dict(made.shares))}
    connection.execute(insert(schema.deployments).values(**row, undone=undone))
    _touch(connection)
    return made


def _touch(connection: Connection) -> None:
    _count(connection, "sets")


def _count(connection: Connection, key: str) -> int:
    """Count one up under a key of the store's own values, and return how far it is."""
    mine = {"key": key}
    changed = connection.execute(
        text("UPDATE meta SET value = CAST(CAST(value AS INTEGER) + 1 AS VARCHAR) WHERE key = :key"), mine
    )
    if changed.rowcount == 0:
        connection.execute(insert(schema.meta).values(key=key, value="1"))
    return int(connection.execute(select(schema.meta.c.value).where(schema.meta.c.key == key)).scalar_one())


def _encoded(library: Library) -> str:
    return msgspec.json.encode(library).decode()


def _version(row: Row[Any]) -> Version:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    values["library"] = msgspec.json.decode(values["library"], type=Library)
    return Version(**values)


def _deployment(row: Row[Any]) -> Deployment:
    values = dict(row._mapping)  # noqa: SLF001 - as above
    del values["undone"]
    values["shares"] = json.loads(values["shares"])
    return Deployment(**values)
