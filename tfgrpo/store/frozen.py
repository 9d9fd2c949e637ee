"""What live experiments have counted, each fact once and for good, in the order in which it was counted.

The books of an experiment are made from these rows alone. Labels and traffic may then change or go: what was counted
stays. A row whose trajectory was erased keeps its numbers and loses the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import astuple, fields
from sqlalchemy import Connection, func, select

from tfgrpo.store import schema
from tfgrpo.store.engine import Database, insert_new
from tfgrpo.types import Arm

Kind: TypeAlias = Literal["labelled", "ended", "settled"]
"""What was counted of a trajectory: its first label, whether it failed early, what it had come to in the end."""

AT_ONCE: Final = 2000
"""How many rows one look takes."""


class Frozen(msgspec.Struct, frozen=True):
    """One fact about one drawn trajectory; which fields say something depends on the kind.

    `at` (seconds since the epoch) is its place in the order of its kind: when the label came, else when the trajectory
    began. `reward` None: nobody labelled it in time. `trajectory` None: it was erased.
    """

    kind: Kind
    app: str
    trajectory: str | None
    arm: Arm
    probability: float
    at: float
    reward: float | None = None
    fresh: bool = False
    tokens: int | None = None
    seconds: float | None = None
    finish: str | None = None
    failed: bool = False


_FIELDS: Final = tuple(field.name for field in fields(Frozen))
_COLUMNS: Final = ("set", "effective", "number", *_FIELDS)


class FrozenRows:
    """The rows of all experiments. An experiment is a set and the revision that its deployment has in effect."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, set_name: str, effective: int, rows: Sequence[Frozen]) -> None:
        """Keep these rows behind those there are, but for kinds that were kept of their trajectory before.

        Durable, and one caller after the other: all read the same order.
        """
        table = schema.frozen
        last = select(func.max(table.c.number)).where(table.c.set == set_name, table.c.effective == effective)

        def work(connection: Connection) -> None:
            first = (connection.execute(last).scalar() or 0) + 1
            values = [(set_name, effective, number, *astuple(row)) for number, row in enumerate(rows, first)]
            insert_new(connection, table, _COLUMNS, values)

        self._database.write(work, durable=True)

    def since(self, set_name: str, effective: int, number: int) -> tuple[list[Frozen], int]:
        """Return the next rows behind `number`, at most `AT_ONCE`, and the number of the last of them."""
        table = schema.frozen
        query = (
            select(table.c.number, *(table.c[name] for name in _FIELDS))
            .where(table.c.set == set_name, table.c.effective == effective, table.c.number > number)
            .order_by(table.c.number)
            .limit(AT_ONCE)
        )
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [Frozen(*row[1:]) for row in rows], rows[-1][0] if rows else number

    def reached(self, set_name: str, effective: int) -> Mapping[Kind, float]:
        """Return how far each kind has come: the last `at` of each that has rows."""
        table = schema.frozen
        query = (
            select(table.c.kind, func.max(table.c.at))
            .where(table.c.set == set_name, table.c.effective == effective)
            .group_by(table.c.kind)
        )
        return {row[0]: row[1] for row in self._database.read(lambda connection: connection.execute(query).all())}
