"""The books of the sets' live experiments, kept up with the store.

What has come of age is frozen first (`freezing`); the books are then made from the frozen rows alone, in their order:
a worker that is started anew comes to the same, also when labels and traffic are gone. Each look reads what is new
since the last one. What the books say is decided in `tfgrpo.experiment`; nothing is changed here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from math import inf

from msgspec.structs import replace

from proxy.freezing import Freezer, Frontier
from tfgrpo import experiment
from tfgrpo.configuration import USUAL, SafetySettings
from tfgrpo.errors import NotFound
from tfgrpo.experiment import Account, Levels, Seen, Span
from tfgrpo.store import Frozen, Store
from tfgrpo.types import Deployment
from tfgrpo.weighing import REWARD_ONLY, Metrics


class Books:
    """The account of one experiment, and the number of the last frozen row in it."""

    def __init__(self, deployment: Deployment, account: Account, frontier: Frontier) -> None:
        self.deployment = deployment
        self.account = account
        self.frontier = frontier
        self.number = 0

    def count(self, row: Frozen) -> None:
        """Count one frozen row."""
        if row.kind == "labelled":
            self.account.label(row.arm, row.reward or 0.0)
        elif row.kind == "ended":
            self.account.end(row.arm, failed=row.failed)
        else:
            seen = Seen(row.arm, row.reward, row.fresh, row.tokens, row.seconds, row.finish)
            self.account.settle(seen)
        self.frontier.pass_by(row.kind, (row.at, "", ""))


class Experiments:
    """The experiments of all sets. All calls block, one at a time.

    `metrics` and `safety` say what labels come to, as for training. A trajectory settles at the age of `window`
    seconds; whether it failed is looked at at the age of `early`.
    """

    def __init__(
        self,
        store: Store,
        *,
        window: float,
        early: float,
        levels: Levels,
        metrics: Metrics = REWARD_ONLY,
        safety: SafetySettings = USUAL,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.window = window
        self._store = store
        self._levels = levels
        self._freezer = Freezer(store, window=window, early=early, metrics=metrics, safety=safety, clock=clock)
        self._clock = clock
        self._books: dict[tuple[str, int], Books] = {}
        self._past: dict[tuple[str, int], Frontier] = {}
        self._over: dict[tuple[str, int], float] = {}
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

    def freeze(self) -> None:
        """Freeze what has come of age in all experiments that compare arms, in those that were replaced as well."""
        for name in self._store.sets.names():
            with self._turn:
                self._freeze_set(self._store.sets.history(name))

    def _freeze_set(self, history: Sequence[Deployment]) -> None:
        for span in experiment.spans(history):
            if span.until == inf:
                self._caught_up(span.deployment, history)
            else:
                self._freeze_past(span, history)

    def _freeze_past(self, span: Span, history: Sequence[Deployment]) -> None:
        """Freeze what came of age since in an experiment that was replaced, until nothing more can."""
        key = span.deployment.set, span.deployment.effective
        if self._over.get(key) == span.until:
            return
        known = self._past.get(key)
        if known is None or known.until != span.until:
            known = self._frontier(span.deployment, history)
            known.until = span.until
            for kind, at in self._store.frozen.reached(*key).items():
                known.pass_by(kind, (at, "", ""))
            self._past[key] = known
        over = self._clock() > span.until + 2 * self.window
        self._freezer.freeze(known)
        if over:
            self._over[key] = span.until

    def _caught_up(self, deployment: Deployment, history: Sequence[Deployment]) -> Books:
        key = deployment.set, deployment.effective
        books = self._books.get(key)
        if books is None:
            books = Books(deployment, Account(experiment.shares(deployment)), self._frontier(deployment, history))
            self._forget(deployment, history[0].effective)
            self._books[key] = books
        books.deployment, books.frontier.revisions = deployment, _revisions(deployment, history)
        # What others have frozen is not looked for again.
        self._read(books)
        self._freezer.freeze(books.frontier)
        self._read(books)
        return books

    def _read(self, books: Books) -> None:
        key = books.deployment.set, books.deployment.effective
        while True:
            rows, books.number = self._store.frozen.since(*key, books.number)
            if not rows:
                return
            for row in rows:
                books.count(row)

    def _frontier(self, deployment: Deployment, history: Sequence[Deployment]) -> Frontier:
        revisions = _revisions(deployment, history)
        return Frontier(deployment.set, deployment.effective, revisions, self._trained(deployment))

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


def _revisions(deployment: Deployment, history: Sequence[Deployment]) -> frozenset[int]:
    return frozenset(one.revision for one in history if one.effective == deployment.effective)


def _number(deployment: Deployment, history: Sequence[Deployment]) -> int:
    """The how manieth experiment with a candidate this is, of its set."""
    tried = {
        one.effective
        for one in history
        if one.candidate is not None and one.shares.get("candidate", 0) > 0 and one.effective <= deployment.effective
    }
    return max(1, len(tried))
