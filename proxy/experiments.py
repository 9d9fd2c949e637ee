"""The books of the sets' live experiments, kept up with the store.

They are made from the recorded rows alone, in their order: a worker that is started anew comes to the same. Each look
reads what is new since the last one. What the books say is decided in `tfgrpo.experiment`; nothing is changed here.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TypeAlias

from msgspec.structs import replace

from tfgrpo import trajectories
from tfgrpo.errors import NotFound
from tfgrpo.experiment import Account, Levels, Seen
from tfgrpo.store import START, Place, Store
from tfgrpo.trajectories import Placed
from tfgrpo.types import Arm, Assignment, Deployment, Exchange
from tfgrpo.weighing import REWARD_ONLY, Metrics

_Key: TypeAlias = tuple[str, str]
"""A trajectory, by its app and id."""

LANDING_SECONDS = 5.0
"""What is younger may still be on its way to the store, and would be passed by."""


class Books:
    """The account of one experiment, and how far it has read."""

    def __init__(
        self, deployment: Deployment, account: Account, *, revisions: frozenset[int], trained: set[str]
    ) -> None:
        self.deployment = deployment
        self.account = account
        self.revisions = revisions
        self.trained = trained
        self.settled: Place = START
        self.ended: Place = START
        self.labelled: Place | None = None
        self.judged: dict[_Key, float] = {}
        """When the trajectories began whose first label is counted, as far as another one may come."""


class Experiments:
    """The experiments of all sets. All calls block, one at a time.

    `metrics` says what labels come to, as for training. A trajectory settles at the age of `window` seconds; whether
    it failed is looked at at the age of `early`.
    """

    def __init__(
        self,
        store: Store,
        *,
        window: float,
        early: float,
        levels: Levels,
        metrics: Metrics = REWARD_ONLY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.window = window
        self._store = store
        self._early = min(early, window)
        self._levels = levels
        self._metrics = metrics
        self._clock = clock
        self._books: dict[tuple[str, int], Books] = {}
        self._turn = threading.Lock()

    def look(self, set_name: str, revision: int | None = None) -> Books | None:
        """Return the books of the current experiment of a set, or that of a revision, as of now.

        None for a set that has no deployment.

        Raises:
            NotFound: There is no such set, or it has no such revision.
        """
        with self._turn:
            history = self._store.sets.history(set_name)
            if not history and set_name not in self._store.sets.names():
                raise NotFound(f"there is no set {set_name!r}; GET /admin/api/sets lists those there are")
            if revision is None:
                deployment = history[0] if history else None
            else:
                deployment = next((one for one in history if one.revision == revision), None)
                if deployment is None:
                    raise NotFound(f"set {set_name!r} has no revision {revision}; its history lists those there are")
            return None if deployment is None else self._caught_up(deployment, history)

    def levels(self, deployment: Deployment) -> Levels:
        """Return the levels for a deployment's candidate: the more candidates a set has had, the lower."""
        return replace(self._levels, candidate=_number(deployment, self._store.sets.history(deployment.set)))

    def _caught_up(self, deployment: Deployment, history: Sequence[Deployment]) -> Books:
        key = deployment.set, deployment.effective
        revisions = frozenset(one.revision for one in history if one.effective == deployment.effective)
        books = self._books.get(key)
        if books is None:
            books = Books(
                deployment,
                Account(_shares(deployment)),
                revisions=revisions,
                trained=self._trained(deployment),
            )
            self._forget(deployment, history[0].effective)
            self._books[key] = books
        books.deployment, books.revisions = deployment, revisions
        now = self._clock()
        self._label(books, now)
        self._end(books, now)
        self._settle(books, now)
        return books

    def _forget(self, deployment: Deployment, current: int) -> None:
        """Keep a set's current books, and make room for others: those are made again where they are asked for again."""
        for key in [key for key in self._books if key[0] == deployment.set and key[1] != current]:
            del self._books[key]

    def _trained(self, deployment: Deployment) -> set[str]:
        """The groups that either version, or one that it was made from, was trained on."""
        known: set[str] = set()
        for number in {deployment.live, deployment.candidate} - {None, 0}:
            line = self._store.sets.lineage(deployment.set, number or 0)
            known |= {key for one in line for lesson in one.library.experiences for key in lesson.sources}
            runs = [one.run for one in line if one.run is not None]
            known |= self._store.experiments.trained_groups(deployment.set, runs) if runs else set()
        return known

    def _settle(self, books: Books, now: float) -> None:
        for rows in self._begun(books, books.settled, now - self.window):
            exchanges = self._exchanges(rows)
            rewards = self._rewards(rows, exchanges)
            for row in rows:
                mine = exchanges[_key(row)]
                books.account.settle(
                    Seen(
                        row.arm,
                        rewards.get(_key(row)),
                        fresh=row.group not in books.trained,
                        tokens=_tokens(mine),
                        seconds=fmean(one.ended_at - one.started_at for one in mine) if mine else None,
                        finish=mine[-1].finish_reason if mine else None,
                    )
                )
            books.settled = _place(rows[-1])

    def _end(self, books: Books, now: float) -> None:
        for rows in self._begun(books, books.ended, now - self._early):
            exchanges = self._exchanges(rows)
            for row in rows:
                early = [one for one in exchanges[_key(row)] if one.started_at < row.started_at + self._early]
                books.account.end(row.arm, failed=any(one.outcome in ("failed", "broken") for one in early))
            books.ended = _place(rows[-1])

    def _label(self, books: Books, now: float) -> None:
        books.judged = {key: at for key, at in books.judged.items() if at > now - self.window - LANDING_SECONDS}
        name, until = books.deployment.set, now - LANDING_SECONDS
        if books.labelled is None:
            # No label of it is older than its first trajectory.
            first = self._store.experiments.begun(name, books.revisions, after=START, until=until)[:1]
            books.labelled = (first[0].started_at, "", "") if first else None
        place = books.labelled
        while place is not None:
            books.labelled = place
            found, place = self._store.experiments.labels_since(name, books.revisions, after=place, until=until)
            for assignment, placed in found:
                self._count_first(books, assignment, placed)

    def _count_first(self, books: Books, assignment: Assignment, placed: Placed) -> None:
        key, reward = _key(assignment), _reward([placed], self._metrics)
        in_time = placed.label.created_at < assignment.started_at + self.window
        if reward is not None and in_time and key not in books.judged:
            books.judged[key] = assignment.started_at
            books.account.label(assignment.arm, reward)

    def _begun(self, books: Books, after: Place, until: float) -> Iterator[list[Assignment]]:
        name = books.deployment.set
        while rows := self._store.experiments.begun(name, books.revisions, after=after, until=until):
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


def _reward(placed: Sequence[Placed], metrics: Metrics) -> float | None:
    """The mean reward of the rollouts of one trajectory: it has several where several answers were asked for."""
    values = [reward.value for reward in trajectories.rewards(placed, metrics).values()]
    return fmean(values) if values else None


def _tokens(exchanges: Sequence[Exchange]) -> int | None:
    known = [one.completion_tokens for one in exchanges if one.completion_tokens is not None]
    return sum(known) if known else None


def _key(row: Assignment) -> _Key:
    return row.app, row.trajectory


def _place(row: Assignment) -> Place:
    return row.started_at, row.app, row.trajectory


def _shares(deployment: Deployment) -> dict[Arm, float]:
    candidate, control = deployment.shares.get("candidate", 0.0), deployment.shares.get("control", 0.0)
    return {"candidate": candidate, "live": max(0.0, 1 - candidate - control), "control": control}


def _number(deployment: Deployment, history: Sequence[Deployment]) -> int:
    """The how manieth experiment with a candidate this is, of its set."""
    tried = {
        one.effective
        for one in history
        if one.candidate is not None and one.shares.get("candidate", 0) > 0 and one.effective <= deployment.effective
    }
    return max(1, len(tried))
