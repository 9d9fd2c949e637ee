"""The commit of each version: a chained digest of everything that decisions rest on.

Whether a version needs approval is told by its run, what it descends from by its parent, what live requests get by its
library. Each is hashed when the version is stored, in a chain of its set's own beside the history, so that a change of
one is found before the version is deployed. Status and note are opinions and may change. It knows no rule of a set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, insert, select

from tfgrpo.errors import Conflict
from tfgrpo.store import chain, schema
from tfgrpo.types import EMPTY_VERSION, FIRST_DRAFT

HASHED: Final = ("set", "version", "library", "created_at", "parent", "policy_model", "run")
"""What of a version is hashed; never changed, for old versions are verified by it."""
OTHER: Final = "its library, run, parent, policy model or time is not what it was stored with"


def add(connection: Connection, version: Mapping[str, Any]) -> None:
    """Commit a version that was just stored, in the caller's durable transaction: no other writes meanwhile."""
    table = schema.commits
    mine = table.c.set == version["set"]
    before = connection.execute(select(table).where(mine).order_by(table.c.number.desc()).limit(1)).one_or_none()
    number, previous = (1, "") if before is None else (before.number + 1, before.hash)
    connection.execute(insert(table).values(**committed(version, number=number, previous=previous)))


def committed(
    version: Mapping[str, Any], *, number: int, previous: str, origin: str = "stored"
) -> dict[str, str | int]:
    """Return the commit of a version; `origin` is `migrated` for one that was there before commits were."""
    row: dict[str, str | int] = {
        "set": version["set"],
        "number": number,
        "version": version["version"],
        "digest": digest(version),
        "origin": origin,
        "previous": previous,
    }
    return row | {"hash": chain.seal(row)}


def digest(version: Mapping[str, Any]) -> str:
    """Return the digest of a version as it is stored."""
    return chain.seal({name: version[name] for name in HASHED} | {"created_at": float(version["created_at"])})


def head(connection: Connection, set_name: str) -> str | None:
    """Return the hash of the newest commit of a set."""
    return next(iter(hashes(connection, set_name)[-1:]), None)


def hashes(connection: Connection, set_name: str) -> list[str]:
    """Return the hashes of a set's commits in order."""
    table = schema.commits
    query = select(table.c.hash).where(table.c.set == set_name).order_by(table.c.number)
    return list(connection.execute(query).scalars())


def check(connection: Connection, set_name: str, version: int) -> None:
    """Raise Conflict unless a version is as it was committed."""
    if version == EMPTY_VERSION:
        return
    table = schema.commits
    query = select(table.c.digest).where(table.c.set == set_name, table.c.version == version)
    noted = connection.execute(query).scalar()
    if noted != _digests(connection, set_name, version).get(version):
        why = "it has no commit in the store" if noted is None else OTHER
        raise Conflict(
            f"version {version} of {set_name!r} was changed in the database: {why}; `tfgrpo sets history {set_name} "
            "--verify` tells more; restore a backup, or store the lessons anew as a version that you have read"
        )


def fault(connection: Connection, set_name: str) -> tuple[int, str] | None:
    """Return the first version of a set that is not as it was committed, or lacks its commit or itself, and why."""
    table = schema.commits
    rows = connection.execute(select(table).where(table.c.set == set_name).order_by(table.c.number)).mappings().all()
    found = _digests(connection, set_name)
    previous = ""
    for number, row in enumerate(rows, start=1):
        values = {name: row[name] for name in row if name != "hash"}
        if row["number"] != number or row["previous"] != previous or chain.seal(values) != row["hash"]:
            return row["version"], "its commit, or one before it, was changed or removed"
        if row["version"] not in found:
            return row["version"], "it was committed, and is gone"
        if found[row["version"]] != row["digest"]:
            return row["version"], OTHER
        previous = row["hash"]
    known = {row["version"] for row in rows}
    return next(((version, "it has no commit") for version in sorted(found) if version not in known), None)


def _digests(connection: Connection, set_name: str, version: int | None = None) -> dict[int, str]:
    table = schema.versions
    query = select(table).where(table.c.set == set_name, table.c.version < FIRST_DRAFT)
    if version is not None:
        query = query.where(table.c.version == version)
    return {row["version"]: digest(dict(row)) for row in connection.execute(query).mappings()}
