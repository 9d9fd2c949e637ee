"""What happened, added up by the hour, so that a page over months reads some thousand numbers and never the traffic.

Exchanges and trajectories are added up by the transaction that records them: each once, however late or often it is
sent. Labels follow behind, for what they come to is no business of theirs: whoever counts them says how far it is.
Neither age nor erasure takes anything back: a number names nobody.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Select, func, select, tuple_

from tfgrpo.store import schema
from tfgrpo.store.distinct import distinct
from tfgrpo.store.engine import Database, add_up, insert
from tfgrpo.store.experiments import START, Place
from tfgrpo.types import Exchange, Label

HOUR: Final = 3600
"""Seconds. An hour is named by how many of them lie between the epoch and its beginning."""

BEGUN: Final = "begun"
LABELLED: Final = "labelled"
PROMPT_TOKENS: Final = "prompt tokens"
COMPLETION_TOKENS: Final = "completion tokens"
"""Facts beside the outcomes of exchanges: trajectories by their beginning, those that have a reward, tokens."""

ADDED: Final = "added "
"""What the name of a fact begins with that counts exchanges by the latency that the proxy added, see `latency`."""

STEPS_PER_OCTAVE: Final = 4
"""Latencies are told apart by a fifth."""

LABELS_AT_ONCE: Final = 500
_COUNTED: Final = "labels counted"

Spot: TypeAlias = tuple[str, int, str]
"""A set ("" for none), an hour and an arm."""


@dataclass(frozen=True, slots=True)
class Fact:
    """How often a fact was met in one step of a span."""

    step: int
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Rewarded:
    """How many trajectories that began in one step of a span have a reward, and the sum of those rewards."""

    step: int
    arm: str
    labelled: int
    rewards: float


@dataclass(frozen=True, slots=True)
class Difference:
    """What labels change of a spot: how many more trajectories have a reward, and by how much their sum grew."""

    labelled: int = 0
    rewards: float = 0.0

    def __add__(self, other: Difference) -> Difference:
        """Return both changes as one."""
        return Difference(self.labelled + other.labelled, self.rewards + other.rewards)


class Hours:
    """The sums of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def facts(self, *, since: int, width: int) -> list[Fact]:
        """Return what happened from the hour `since` on, in steps of `width` hours."""
        table = schema.hours
        step = (table.c.hour - since) // width
        query = select(step, table.c.fact, func.sum(table.c.count)).where(table.c.hour >= since)
        return [Fact(row[0], row[1], int(row[2])) for row in self._rows(query.group_by(step, table.c.fact))]

    def rewards(self, set_name: str, *, since: int, width: int) -> list[Rewarded]:
        """Return the rewards by arm of a set's trajectories that began from the hour `since` on, in such steps."""
        table = schema.reward_hours
        step = (table.c.hour - since) // width
        sums = func.sum(table.c.labelled), func.sum(table.c.rewards)
        query = select(step, table.c.arm, *sums).where(table.c.set == set_name, table.c.hour >= since)
        rows = self._rows(query.group_by(step, table.c.arm))
        return [Rewarded(row[0], row[1], int(row[2]), float(row[3])) for row in rows]

    def rewarded_sets(self) -> list[str]:
        """Return the sets whose traffic has a reward, "" for traffic of no set."""
        query = distinct(schema.reward_hours.c.set)
        return sorted(self._database.read(lambda connection: connection.execute(query).scalars().all()))

    def counted(self) -> Place:
        """Return the place of the last label that was counted: its time, its app, its id."""
        return self._database.read(_counted)

    def uncounted(self, after: Place, *, until: float) -> list[Label]:
        """Return the labels behind a place that came before `until`, the oldest first, some hundred at a time."""
        table = schema.labels
        place = tuple_(table.c.created_at, table.c.app, table.c.feedback_id)
        query = (
            select(table)
            # The first bound is what the index can use.
            .where(table.c.created_at >= after[0], place > tuple_(*after), table.c.created_at < until)
            .order_by(table.c.created_at, table.c.app, table.c.feedback_id)
            .limit(LABELS_AT_ONCE)
        )
        return [Label(**row._mapping) for row in self._rows(query)]  # noqa: SLF001 - SQLAlchemy's public name for it

    def count(self, changes: Mapping[Spot, Difference], *, after: Place, to: Place) -> bool:
        """Add what the labels between two places change; False when another has counted them already."""

        def work(connection: Connection) -> bool:
            if _counted(connection) != after:
                return False
            told = [(spot, changes[spot]) for spot in sorted(changes) if changes[spot] != Difference()]
            rows = [(*spot, change.labelled, change.rewards) for spot, change in told]
            add_up(connection, schema.reward_hours, ("set", "hour", "arm"), ("labelled", "rewards"), rows)
            more: Counter[int] = Counter()
            for (_, hour, _), change in changes.items():
                more[hour] += change.labelled
            _add_facts(connection, {(hour, LABELLED): count for hour, count in more.items()})
            row = {"key": _COUNTED, "value": json.dumps(to)}
            replace = insert(connection, schema.meta).values(row)
            connection.execute(replace.on_conflict_do_update(index_elements=["key"], set_=row))
            return True

        return self._database.write(work, durable=True)

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        return self._database.read(lambda connection: connection.execute(query).all())


def add(connection: Connection, exchanges: Iterable[Exchange], begun: Iterable[float]) -> None:
    """Add exchanges that were recorded just now, and trajectories by their beginnings."""
    met: defaultdict[tuple[int, str], int] = defaultdict(int)
    for one in exchanges:
        hour = int(one.started_at // HOUR)
        met[hour, one.outcome] += 1
        if one.sent_at is not None:
            met[hour, _added(int((one.sent_at - one.started_at) * 1e6))] += 1
        if one.prompt_tokens:
            met[hour, PROMPT_TOKENS] += one.prompt_tokens
        if one.completion_tokens:
            met[hour, COMPLETION_TOKENS] += one.completion_tokens
    for at in begun:
        met[int(at // HOUR), BEGUN] += 1
    _add_facts(connection, met)


def latency(fact: str) -> float:
    """Return the seconds, within a tenth, that a fact named `ADDED`... stands for."""
    return math.pow(2, (int(fact.removeprefix(ADDED)) + 0.5) / STEPS_PER_OCTAVE) / 1e6


@lru_cache(maxsize=4096)
def _added(microseconds: int) -> str:
    return f"{ADDED}{math.floor(STEPS_PER_OCTAVE * math.log2(max(1, microseconds)))}"


def _add_facts(connection: Connection, met: Mapping[tuple[int, str], int]) -> None:
    rows = [(*key, count) for key, count in sorted(met.items()) if count]
    add_up(connection, schema.hours, ("hour", "fact"), ("count",), rows)


def _counted(connection: Connection) -> Place:
    table = schema.meta
    found = connection.execute(select(table.c.value).where(table.c.key == _COUNTED)).scalar()
    if found is None:
        return START
    at, app, label = json.loads(found)
    return at, app, label
