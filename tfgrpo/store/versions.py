"""The versions of experience sets as they are stored: each a whole library, none ever changed but in its status."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, insert, select, text, update

from tfgrpo.errors import NotFound, UsageError
from tfgrpo.store import commits, deployable, schema
from tfgrpo.store.deployable import NO_RULES, Rules
from tfgrpo.store.distinct import distinct
from tfgrpo.store.engine import Database
from tfgrpo.types import EMPTY_VERSION, FIRST_DRAFT, Library, Version, VersionStatus

DRAFT_SECONDS = 86_400.0
"""A draft as old as this was left behind by a run that was killed."""


class Versions:
    """The versions of all experience sets of a store."""

    def __init__(self, database: Database, rules: Rules = NO_RULES) -> None:
        self._database = database
        self._rules = rules

    def names(self) -> list[str]:
        """Return the sets that have a version or recorded traffic."""
        made = select(schema.versions.c.set).where(schema.versions.c.version < FIRST_DRAFT)
        query = made.union(distinct(schema.trajectories.c.set))
        return sorted(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def versions(self, set_name: str) -> list[Version]:
        """Return the versions of a set in order; none for a set that has none."""
        return self._database.read(lambda connection: all_of(connection, set_name))

    def version(self, set_name: str, version: int) -> Version:
        """Return one version; 0 is the empty library of any set.

        Raises:
            NotFound: The set has no such version.
        """
        return self._database.read(lambda connection: find(connection, set_name, version))

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
                find_no_draft(connection, set_name, parent)
            versions = all_of(connection, set_name)
            kept = library(versions) if callable(library) else library
            known = {entry.text for one in versions for entry in one.library.experiences}
            deployable.check_entries(kept, but=known, ours=self._rules.secrets)
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
            put(connection, made)
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
            find(connection, set_name, version)
            table = schema.versions
            mine = table.c.set == set_name, table.c.version == version
            connection.execute(update(table).where(*mine).values(status=status, note=note))
            touch(connection)

        self._database.write(work, durable=True)

    def next_id(self, set_name: str) -> int:
        """Return the number of the next experience id: ids are unique within a set, over all its versions."""
        return max((version.library.next_id for version in self.versions(set_name)), default=1)

    def stamp(self) -> int:
        """Return a number that changes whenever a version, its status or a deployment does."""
        query = select(schema.meta.c.value).where(schema.meta.c.key == "sets")
        return int(self._database.read(lambda connection: connection.execute(query).scalar()) or 0)


def check_set(connection: Connection, set_name: str) -> None:
    """Raise NotFound unless the set has a version or recorded traffic."""
    for table in (schema.versions, schema.trajectories):
        if connection.execute(select(table.c.set).where(table.c.set == set_name).limit(1)).first():
            return
    raise NotFound(f"there is no set {set_name!r}; `tfgrpo sets list` shows those there are")


def all_of(connection: Connection, set_name: str) -> list[Version]:
    """Return the versions of a set in order, without drafts."""
    table = schema.versions
    mine = table.c.set == set_name, table.c.version < FIRST_DRAFT
    query = select(table).where(*mine).order_by(table.c.version)
    return [_version(row) for row in connection.execute(query)]


def find(connection: Connection, set_name: str, version: int) -> Version:
    """Return one version, a draft too; NotFound when the set has none such."""
    table = schema.versions
    query = select(table).where(table.c.set == set_name, table.c.version == version)
    row = connection.execute(query).one_or_none() if 0 <= version < 2**31 else None
    if row is not None:
        return _version(row)
    if version == EMPTY_VERSION:
        return Version(set_name, EMPTY_VERSION, Library(), "by hand", 0.0, note="the empty library")
    newest = max((one.version for one in all_of(connection, set_name)), default=EMPTY_VERSION)
    raise NotFound(f"set {set_name!r} has no version {version}; the newest is {newest}")


def find_no_draft(connection: Connection, set_name: str, version: int) -> Version:
    """Return one version; UsageError when it is a draft."""
    found = find(connection, set_name, version)
    if found.status == "draft":
        raise UsageError(f"version {version} is a draft under test; name the version that its run stored")
    return found


def put(connection: Connection, made: Version) -> None:
    """Store a version that is not there yet."""
    row = {name: getattr(made, name) for name in made.__struct_fields__} | {"library": _encoded(made.library)}
    connection.execute(insert(schema.versions).values(**row))
    commits.add(connection, row)
    touch(connection)


def touch(connection: Connection) -> None:
    """Let every proxy see that something changed."""
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
