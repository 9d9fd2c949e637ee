"""The history of experience sets: who changed what, when and why. Rows are added, and never changed or removed.

What live requests get is the newest row that has a revision; the others are what people said of a version. Each row
holds the hash of the row before and of itself, and the digests of the libraries it names (`chain`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Connection, Row, delete, insert, select

from tfgrpo.errors import StoreError, UsageError
from tfgrpo.store import chain, commits, schema, versions
from tfgrpo.store.engine import Database
from tfgrpo.types import EMPTY_VERSION, Change, Deployment, HistoryAction

NOTHING: Final = "none"
"""What stands in a head for a set without rows, or without versions."""
LONGEST: Final = 2000
"""Characters of a reason, or of who gave it: rows are never removed, and every reader of a history reads them all."""


class Fault(NamedTuple):
    """The first row of a set's history, or version of the set, that is not as it was written."""

    set: str
    number: int
    reason: str
    what: Literal["row", "version"] = "row"


class History:
    """The histories of all sets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, set_name: str) -> list[Change]:
        """Return everything that was done to a set, the newest first.

        Raises StoreError for a row that was made unreadable by hand.
        """
        return [_change(row) for row in self._database.read(lambda connection: rows(connection, set_name))]

    def sets(self) -> list[str]:
        """Return the sets that have a history."""
        query = select(schema.history.c.set).distinct()
        return sorted(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def head(self, set_name: str) -> str:
        """Return the hashes of a set's newest row and newest commit, to be noted where nobody who writes the store can
        write.
        """

        def work(connection: Connection) -> str:
            newest = next(iter(rows(connection, set_name)), None)
            return _head(None if newest is None else newest.hash, commits.head(connection, set_name))

        return self._database.read(work)

    def descends(self, set_name: str, noted: str) -> bool:
        """Whether a head that was noted earlier is still a part of what the set is now."""

        def work(connection: Connection) -> bool:
            history, _, stored = noted.partition(":")
            told = {row.hash for row in rows(connection, set_name)} | {NOTHING}
            return history in told and stored in {*commits.hashes(connection, set_name), NOTHING}

        return self._database.read(work)

    def newest(self, set_name: str) -> tuple[int, str | None]:
        """Return how many rows a set has, and the hash of the newest; whatever they hold."""
        found = self._database.read(lambda connection: rows(connection, set_name))
        return len(found), found[0].hash if found else None

    def fault(self, set_name: str) -> Fault | None:
        """Return the first row of a set that was changed, is missing, or whose libraries are not those it named; else
        the first version that is not as it was committed.
        """

        def work(connection: Connection) -> Fault | None:
            found = [dict(row._mapping) for row in reversed(rows(connection, set_name))]  # noqa: SLF001 - SQLAlchemy's public name for it
            broken = chain.fault(found)
            # From the first broken row on nothing is what was written: it need not even be readable.
            whole = found if broken is None else found[: broken[0] - 1]
            told = _other_library(connection, set_name, whole) or broken or _cut(connection, set_name, found)
            if told is not None:
                return Fault(set_name, *told)
            other = commits.fault(connection, set_name)
            return None if other is None else Fault(set_name, *other, "version")

        return self._database.read(work)


def rows(connection: Connection, set_name: str) -> list[Row[Any]]:
    """Return the rows of a set, the newest first."""
    table = schema.history
    query = select(table).where(table.c.set == set_name).order_by(table.c.number.desc())
    return list(connection.execute(query).all())


def deployments(connection: Connection, set_name: str) -> list[Row[Any]]:
    """Return the rows of a set that say what live requests get, the newest first."""
    return [row for row in rows(connection, set_name) if row.revision is not None]


def deployment(row: Row[Any]) -> Deployment:
    """Return a row that has a revision as a deployment."""
    return Deployment(
        set=row.set,
        revision=row.revision,
        live=row.live,
        candidate=row.candidate,
        shares=json.loads(row.shares),
        action=row.action,
        reason=row.reason,
        actor=row.actor,
        created_at=row.created_at,
        effective=row.effective,
    )


def check_said(*, reason: str, actor: str) -> None:
    """Raise UsageError for a reason, or for one who gives it, that is too long to be kept for good."""
    for field, text in (("reason", reason), ("by", actor)):
        if len(text) > LONGEST:
            raise UsageError(f"{field}: {len(text):,} characters; it may have {LONGEST:,} at most", field=field)


def deployed(connection: Connection, made: Deployment, *, undone: int | None, entries: Collection[str] = ()) -> None:
    """Add a deployment; `undone` is the revision a rollback takes back, `entries` the ids that are withdrawn."""
    row = {name: getattr(made, name) for name in made.__struct_fields__} | {"shares": json.dumps(dict(made.shares))}
    add(connection, row, named=(made.live, made.candidate), undone=undone, entries=entries)


def said(
    connection: Connection,
    set_name: str,
    action: HistoryAction,
    *,
    version: int | None,
    reason: str,
    actor: str,
    entries: Collection[str] = (),
) -> None:
    """Add what was done without a change of the deployment, to `version` where it was done to one."""
    row = {"set": set_name, "action": action, "version": version, "reason": reason, "actor": actor}
    add(connection, row | {"created_at": time.time()}, named=(version,), entries=entries)


def add(
    connection: Connection,
    row: Mapping[str, Any],
    *,
    named: Collection[int | None],
    undone: int | None = None,
    entries: Collection[str] = (),
) -> None:
    """Add a row behind the newest of its set, in the caller's durable transaction: no other writes meanwhile.

    `named` are the versions whose libraries it stands for.
    """
    before = next(iter(rows(connection, row["set"])), None)
    contents = {str(number): _library_digest(connection, row["set"], number) for number in named if number}
    whole = dict(row) | {
        "undone": undone,
        "entries": json.dumps(sorted(entries)),
        "contents": json.dumps(contents, sort_keys=True),
    }
    number, previous = (1, "") if before is None else (before.number + 1, before.hash)
    made = chain.sealed(whole, number=number, previous=previous)
    connection.execute(insert(schema.history).values(**made))
    key = f"history {row['set']}"
    connection.execute(delete(schema.meta).where(schema.meta.c.key == key))
    connection.execute(insert(schema.meta).values(key=key, value=f"{number} {made['hash']}"))
    versions.touch(connection)


def _cut(connection: Connection, set_name: str, found: list[dict[str, Any]]) -> tuple[int, str] | None:
    """Return where the rows end, if they went on once: the store keeps the newest hash apart from the rows."""
    query = select(schema.meta.c.value).where(schema.meta.c.key == f"history {set_name}")
    noted = connection.execute(query).scalar()
    newest = f"{len(found)} {found[-1]['hash']}" if found else None
    if noted == newest:
        return None
    return len(found) + 1, "the rows from here on were removed, or the note of the newest one was changed"


def _head(history: str | None, stored: str | None) -> str:
    return f"{history or NOTHING}:{stored or NOTHING}"


def _other_library(connection: Connection, set_name: str, found: list[dict[str, Any]]) -> tuple[int, str] | None:
    """Return the first row that names a library which is another one now."""
    digests: dict[str, str | None] = {}
    for row in found:
        for version, before in json.loads(row["contents"]).items():
            if version not in digests:
                digests[version] = _library_digest(connection, set_name, int(version))
            if digests[version] != before:
                return row["number"], f"the library of version {version} is not the one it names"
    return None


def _library_digest(connection: Connection, set_name: str, version: int) -> str | None:
    table = schema.versions
    query = select(table.c.library).where(table.c.set == set_name, table.c.version == version)
    library = connection.execute(query).scalar()
    if library is None or version == EMPTY_VERSION:
        return None
    # SQLite gives bytes back where somebody put bytes into a text.
    return chain.digest(library if isinstance(library, str) else repr(library))


def _change(row: Row[Any]) -> Change:
    values = dict(row._mapping)  # noqa: SLF001 - as above
    del values["undone"], values["previous"]
    try:
        shares = None if row.shares is None else json.loads(row.shares)
        contents = {int(version): found for version, found in json.loads(row.contents).items()}
        entries = tuple(json.loads(row.entries))
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(
            f"row {row.number} of the history of {row.set} is not as it was written and cannot be read; "
            f"`tfgrpo sets history {row.set} --verify` says where the history was changed first"
        ) from error
    return Change(**(values | {"shares": shares, "entries": entries, "contents": contents}))
