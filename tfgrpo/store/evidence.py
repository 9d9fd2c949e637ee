"""What comparisons and ablations found, and how often the same held-out tasks were used to decide.

One row for each comparison, under a name that the same comparison has again; a row is made once and only its result
is written again. It judges nothing: at which level a use is tested is for `significance` to say.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, func, insert, select, update

from tfgrpo.store import schema
from tfgrpo.store.engine import Database

Kind = Literal["comparison", "ablation"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison or ablation. `split` names the tasks, `use` is None where it decided no status."""

    key: str
    kind: Kind
    set: str
    version: int
    split: str
    model: str
    use: int | None
    result: Mapping[str, Any]
    created_at: float = 0.0
    """When it was kept; the store sets it."""


class Evidence:
    """The findings of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def uses(self, set_name: str, split: str, *, key: str) -> int:
        """Return which use of a split a comparison is, or would be: from 1, the number it has where it was claimed."""
        return self._database.read(lambda connection: _use(connection, set_name, split, key))

    def claim(self, finding: Finding) -> int:
        """Keep a comparison as a use of its split, and return which use it is.

        The one of the same key is the same use, and its result is replaced; `finding.use` is not looked at.
        """

        def work(connection: Connection) -> int:
            use = _use(connection, finding.set, finding.split, finding.key)
            _put(connection, finding, use)
            return use

        return self._database.write(work, durable=True)

    def keep(self, finding: Finding) -> None:
        """Keep what decided nothing: an ablation, a comparison of other versions. It is no use of its split."""
        self._database.write(lambda connection: _put(connection, finding, None), durable=True)

    def newest(
        self, kind: Kind, set_name: str, version: int | None = None, *, split: str | None = None
    ) -> Finding | None:
        """Return the newest finding of a kind about a set, or one version of it, on any tasks or those of `split`."""
        table = schema.evidence
        query = select(table).where(table.c.kind == kind, table.c.set == set_name).order_by(table.c.created_at.desc())
        if version is not None:
            query = query.where(table.c.version == version)
        if split is not None:
            query = query.where(table.c.split == split)
        row = self._database.read(lambda connection: connection.execute(query.limit(1)).one_or_none())
        return None if row is None else _finding(row)


def _use(connection: Connection, set_name: str, split: str, key: str) -> int:
    table = schema.evidence
    mine = select(table.c.use).where(table.c.key == key, table.c.set == set_name)
    found = connection.execute(mine).scalar()
    if found is not None:
        return int(found)
    last = select(func.max(table.c.use)).where(table.c.set == set_name, table.c.split == split)
    return int(connection.execute(last).scalar() or 0) + 1


def _put(connection: Connection, finding: Finding, use: int | None) -> None:
    table = schema.evidence
    row = {
        "kind": finding.kind,
        "version": finding.version,
        "split": finding.split,
        "model": finding.model,
        "result": json.dumps(dict(finding.result)),
        "created_at": time.time(),
    } | ({} if use is None else {"use": use})
    mine = table.c.key == finding.key, table.c.set == finding.set
    if connection.execute(update(table).where(*mine).values(**row)).rowcount == 0:
        connection.execute(insert(table).values(**{"use": None, **row}, key=finding.key, set=finding.set))


def _finding(row: Row[Any]) -> Finding:
    values = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
    values["result"] = json.loads(values["result"])
    return Finding(**values)
