"""What live experiments count of each drawn trajectory, taken from the traffic once, when its time has come, and kept.

Three facts, each with a time of its own: the first label that counts, whether an exchange failed in its first hour,
and what it had come to at the age of the window. Once kept, neither a later label nor the deletion of traffic changes
them. It keeps no books: those are made from what is kept here (`experiments`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import TypeAlias

from tfgrpo.rewards import Placed, rewards
from tfgrpo.store import START, Frozen, Kind, Place, Store
from tfgrpo.types import Arm, Assignment, Exchange
from tfgrpo.weighing import REWARD_ONLY, Metrics

_Key: TypeAlias = tuple[str, str]
"""A trajectory, by its app and id."""

_Page: TypeAlias = tuple[list[Frozen], Place]
"""What one look at the traffic found, and the place to go on from."""

LANDING_SECONDS = 5.0
"""What is younger may still be on its way to the store, and would be passed by."""


@dataclass(slots=True)
class Frontier:
    """An experiment, and how far the traffic is taken for each kind. `places` only ever go forward.

    `trained`: groups that its versions learned from. `until`: when its last trajectory may have begun.
    """

    set_name: str
    effective: int
    revisions: frozenset[int]
    trained: set[str] = field(default_factory=set)
    until: float = inf
    places: dict[Kind, Place] = field(default_factory=dict)

    def pass_by(self, kind: Kind, place: Place) -> None:
        """Go on behind this place."""
        self.places[kind] = max(place, self.places.get(kind, START))


class Freezer:
    """Takes facts from the traffic. All calls block.

    `metrics` says what labels come to, as for training. A trajectory settles at the age of `window` seconds; whether
    it failed is looked at at the age of `early`.
    """

    def __init__(
        self,
        store: Store,
        *,
        window: float,
        early: float,
        metrics: Metrics = REWARD_ONLY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.window = window
        self._store = store
        self._early = min(early, window)
        self._metrics = metrics
        self._clock = clock

    def freeze(self, frontier: Frontier) -> None:
        """Keep whatever has come of age behind the frontier, a batch a transaction, and move the frontier on."""
        now = self._clock()
        kinds: tuple[tuple[Kind, Iterator[_Page]], ...] = (
            ("labelled", self._labelled(frontier, now)),
            ("ended", self._ended(frontier, now)),
            ("settled", self._settled(frontier, now)),
        )
        for kind, pages in kinds:
            for rows, place in pages:
                if rows:
                    self._store.frozen.add(frontier.set_name, frontier.effective, rows)
                frontier.pass_by(kind, place)

    def _settled(self, frontier: Frontier, now: float) -> Iterator[_Page]:
        for rows in self._begun(frontier, "settled", now - self.window):
            exchanges = self._exchanges(rows)
            judged = self._rewards(rows, exchanges)
            found = []
            for row in rows:
                mine = exchanges[_key(row)]
                found.append(
                    Frozen(
                        *_drawn("settled", row),
                        at=row.started_at,
                        reward=judged.get(_key(row)),
                        fresh=row.group not in frontier.trained,
                        tokens=_tokens(mine),
                        seconds=fmean(one.ended_at - one.started_at for one in mine) if mine else None,
                        finish=mine[-1].finish_reason if mine else None,
                    )
                )
            yield found, _place(rows[-1])

    def _ended(self, frontier: Frontier, now: float) -> Iterator[_Page]:
        for rows in self._begun(frontier, "ended", now - self._early):
            exchanges = self._exchanges(rows)
            found = []
            for row in rows:
                early = [one for one in exchanges[_key(row)] if one.started_at < row.started_at + self._early]
                failed = any(one.outcome in ("failed", "broken") for one in early)
                found.append(Frozen(*_drawn("ended", row), at=row.started_at, failed=failed))
            yield found, _place(rows[-1])

    def _labelled(self, frontier: Frontier, now: float) -> Iterator[_Page]:
        until = min(now - LANDING_SECONDS, frontier.until + self.window)
        place = frontier.places.get("labelled") or self._first(frontier, until)
        while place is not None:
            found, place = self._store.experiments.labels_since(
                frontier.set_name, frontier.revisions, after=place, until=until
            )
            if place is not None:
                yield [row for row in (self._first_label(*one) for one in found) if row is not None], place

    def _first(self, frontier: Frontier, until: float) -> Place | None:
        """Where the labels of an experiment begin: none is older than its first trajectory."""
        found = self._store.experiments.begun(frontier.set_name, frontier.revisions, after=START, until=until)[:1]
        return (found[0].started_at, "", "") if found else None

    def _first_label(self, assignment: Assignment, placed: Placed) -> Frozen | None:
        """A label as it is counted if it is its trajectory's first; the store keeps no second one."""
        reward = _reward([placed], self._metrics)
        if reward is None or placed.label.created_at >= assignment.started_at + self.window:
            return None
        return Frozen(*_drawn("labelled", assignment), at=placed.label.created_at, reward=reward)

    def _begun(self, frontier: Frontier, kind: Kind, until: float) -> Iterator[list[Assignment]]:
        after, look = frontier.places.get(kind, START), self._store.experiments.begun
        while rows := look(frontier.set_name, frontier.revisions, after=after, until=min(until, frontier.until)):
            yield rows
            after = _place(rows[-1])

    def _exchanges(self, rows: Sequence[Assignment]) -> dict[_Key, list[Exchange]]:
        names: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            names[row.app].append(row.trajectory)
        found: dict[_Key, list[Exchange]] = {_key(row): [] for row in rows}
        for app, some in names.items():
            for name, exchanges in self._store.traffic.of_trajectories(app, some).items():
                found[app, name] = exchanges
        return found

    def _rewards(self, rows: Sequence[Assignment], exchanges: Mapping[_Key, list[Exchange]]) -> dict[_Key, float]:
        """The rewards of those that were labelled in time."""
        begun = {_key(row): row.started_at for row in rows}
        found: dict[_Key, float] = {}
        for app in {app for app, _ in begun}:
            mine = {name: some for (of, name), some in exchanges.items() if of == app}
            for name, placed in self._store.experiments.labels(app, mine).items():
                until = begun[app, name] + self.window
                reward = _reward([one for one in placed if one.label.created_at < until], self._metrics)
                if reward is not None:
                    found[app, name] = reward
        return found


def _drawn(kind: Kind, row: Assignment) -> tuple[Kind, str, str, Arm, float]:
    assert row.probability is not None, "only drawn trajectories are looked at"
    return kind, row.app, row.trajectory, row.arm, row.probability


def _reward(placed: Sequence[Placed], metrics: Metrics) -> float | None:
    """The mean reward of the rollouts of one trajectory: it has several where several answers were asked for."""
    values = [reward.value for reward in rewards(placed, metrics).values()]
    return fmean(values) if values else None


def _tokens(exchanges: Sequence[Exchange]) -> int | None:
    known = [one.completion_tokens for one in exchanges if one.completion_tokens is not None]
    return sum(known) if known else None


def _key(row: Assignment) -> _Key:
    return row.app, row.trajectory


def _place(row: Assignment) -> Place:
    return row.started_at, row.app, row.trajectory
