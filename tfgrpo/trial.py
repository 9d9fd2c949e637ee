"""The cheap check of edits inside a run: every change is left out for half of the next tasks, by a fair draw.

A change is what an edit did to one entry: made it, reworded it or took it away. While it is on trial, half of the
tasks are rolled out with it and half without; the rollouts are made anyway, so the check costs none. Rewards are
compared by task, corrected by what the task earned before (a control variate: Deng and others 2013, "Improving the
sensitivity of online controlled experiments"). A change is taken back only when it is shown to do harm; one that
was seen on enough tasks without that is trusted. Pure: it makes no rollout and calls no model. It says nothing on
whether anything helps: that is for the gate, on tasks that nobody learned from.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from statistics import NormalDist, fmean
from typing import Final

from msgspec import structs

from tfgrpo import additive
from tfgrpo.types import Experience, Library, Operation
from tfgrpo.votes import Votes

FEWEST: Final = 8
"""Tasks on each side below which nothing is said: the noise cannot be told from so few."""

LOOK: Final = 40
"""Tasks after which a change is first judged: each early look is one more chance to be wrong."""
RIDGE: Final = 0.5
TINY: Final = 1e-9
"""A spread of rewards below this is none."""

HARM: Final = -1.0
"""The score of an entry below which it is taken for harmful."""
AT_LAST: Final = 1.0
"""The score that an entry must have at the end of a run: nothing may be kept that has nothing to show."""
TELLING: Final = 120
"""Tasks after which an entry that nothing speaks for is taken back though no harm is shown."""
JUDGED: Final = 40
"""Votes in a run before which they are believed: of fewer nobody can say that they contradict each other."""
BELIEVED: Final = 0.5
"""The share of what votes say that must be more than chance for them to be believed in full."""
ENOUGH_VOTES: Final = 3
"""Lessons that must speak of an entry, however few groups there were."""
ENOUGH_GROUPS: Final = 60
"""Groups before which too few lessons are no reason: those of one batch made the entry, others must have their say."""

_HALF: Final = {True: 0.5, False: -0.5, None: 0.0}
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Change:
    """One entry before and after; None where it is not there."""

    id: str
    before: Experience | None
    after: Experience | None

    @property
    def key(self) -> tuple[str, str | None]:
        """The change as rollouts know it: another wording is another change."""
        return self.id, self.after.text if self.after else None

    @property
    def made(self) -> bool:
        """Whether the entry was made by it."""
        return self.before is None and self.after is not None

    @property
    def operation(self) -> Operation:
        """The change as the operation that would make it."""
        if self.after is None:
            return Operation("delete", (self.id,))
        ids = () if self.before is None else (self.id,)
        return Operation("update" if ids else "add", ids, self.after.text, sources=self.after.sources)


@dataclass(frozen=True, slots=True)
class Finding:
    """What rollouts with and without a change came to. `upper` bounds the effect from above, one-sided."""

    change: Change
    effect: float
    upper: float
    tasks_with: int
    tasks_without: int
    error: float = inf
    """The standard error of the effect; infinite where there were too few tasks."""
    votes: Votes | None = None
    """What later lessons said of an entry that was made in this run, where they are counted."""
    support: float = 0.0
    """Share of the groups that must speak of such an entry."""
    trust: float = 1.0
    """How far votes are believed in this run, from 0 to 1."""
    least: float = 0.0
    """The score that such an entry must have when it was seen on enough tasks."""

    @property
    def score(self) -> float:
        """Effect and votes together, each in its own standard errors: about N(0, 2) where a lesson means nothing.

        Votes weigh `trust`, and the sum is scaled so that it keeps this spread.
        """
        told = self.trust * self.votes.surplus if self.votes else 0.0
        return (self.effect / max(self.error, TINY) + told) * sqrt(2 / (1 + self.trust**2))

    @property
    def unsupported(self) -> bool:
        """Whether an entry was judged, and too few lessons speak of it or all in all nothing speaks for it."""
        if self.votes is None or not self.tested or self.harms:
            return False
        told = self.error == inf or self.tasks_with + self.tasks_without >= TELLING
        few = self.votes.groups >= ENOUGH_GROUPS and self.votes.cast < max(
            ENOUGH_VOTES, self.support * self.votes.groups
        )
        return few or (told and self.score < self.least)

    @property
    def undone(self) -> bool:
        """Whether the change is taken back."""
        return self.harms or self.unsupported

    @property
    def tested(self) -> bool:
        """Whether there were enough tasks to say anything."""
        return self.upper < inf

    @property
    def harms(self) -> bool:
        """Whether harm is shown."""
        if self.votes is not None:
            return self.tested and self.error < inf and self.score < HARM
        return self.upper < 0

    def __str__(self) -> str:
        if self.votes is not None:
            earned = f"tasks earned {self.effect:+.3f} with it ({self.tasks_with} with, {self.tasks_without} without)"
            return f"{self.votes}; {earned}"
        return (
            f"tasks earned {-self.effect:.3f} less with it than without (at least {-self.upper:.3f}; "
            f"{self.tasks_with} tasks with, {self.tasks_without} without)"
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """One task: which changes on trial it had (by id and text), and what it earned beyond expectation."""

    had: Mapping[tuple[str, str | None], bool]
    surplus: float


@dataclass(frozen=True, slots=True)
class Trial:
    """The changes on trial, from `trusted` to the current library, with what was seen of them so far.

    `enough` is how many tasks make a change trusted, `confidence` how sure harm must be. With `support` an entry made
    in this run is judged by votes too, and taken back when less than that share of the groups speaks of it.
    """

    trusted: Library
    enough: int
    confidence: float
    support: float | None = None
    seen: tuple[Seen, ...] = ()
    votes: Mapping[str, Votes] = field(default_factory=dict)

    def draw(self, library: Library, tasks: int, seed: int) -> list[frozenset[str]]:
        """Return for each task the ids of the changes that it does without: each change is absent for half."""
        absent: list[set[str]] = [set() for _ in range(tasks)]
        for change in changes(self.trusted, library):
            # No secret; by id, so that one change's draw does not depend on the others.
            rng = random.Random(f"{seed}:{change.id}")  # noqa: S311
            for at in rng.sample(range(tasks), tasks // 2):
                absent[at].add(change.id)
        return [frozenset(ids) for ids in absent]

    def observed(self, library: Library, absent: Sequence[frozenset[str]], surplus: Sequence[float]) -> Trial:
        """Return the trial with what tasks earned, each under the library without its `absent` changes."""
        on_trial = changes(self.trusted, library)
        new = [
            Seen({self._key(change): change.id not in ids for change in on_trial}, extra)
            for ids, extra in zip(absent, surplus, strict=True)
        ]
        return replace(self, seen=(*self.seen, *new))

    def counted(self, votes: Mapping[str, Votes]) -> Trial:
        """Return the trial with further votes, by id of the entry."""
        return replace(
            self, votes={**self.votes, **{id_: self.votes.get(id_, Votes()) + one for id_, one in votes.items()}}
        )

    def findings(self, library: Library, *, closing: bool = False) -> list[Finding]:
        """Return what was found of each change on trial, in the order of entries.

        Their effects are fitted together, as if they added up. A change is judged once it was seen on `LOOK` tasks,
        or as many as there are; when `closing`, as soon as anything can be said.
        """
        on_trial = changes(self.trusted, library)
        if not on_trial:
            return []
        keys = [self._key(change) for change in on_trial]
        rows = [[_HALF[seen.had.get(key)] for key in keys] for seen in self.seen]
        told = [(row, seen.surplus) for row, seen in zip(rows, self.seen, strict=True) if any(row)]
        if not told:
            return []  # an edit that no rollout was made under says nothing yet
        fitted = additive.fit([row for row, _ in told], [extra for _, extra in told], ridge=RIDGE)
        least = 2 * FEWEST if closing else min(LOOK, self.enough)
        found = [
            self._finding(change, [row[at] for row, _ in told], fitted[at], least) for at, change in enumerate(on_trial)
        ]
        return found if self.support is None else [self._voted(one, self.support, closing=closing) for one in found]

    @property
    def trust(self) -> float:
        """How far votes are believed, from 0 to 1, by whether they are more at one than tossed coins would be.

        It is the positive part of the factor of James and Stein (1961), by which the surpluses of all entries are
        shrunk towards none; 1 where it is at least `BELIEVED`, or votes are few.
        """
        surpluses = [one.surplus for one in self.votes.values() if one.cast]
        if sum(one.cast for one in self.votes.values()) < JUDGED:
            return 1.0
        spread = sum(one * one for one in surpluses)
        shrunk = max(0.0, 1 - len(surpluses) / spread) if spread else 0.0
        return 1.0 if shrunk >= BELIEVED else shrunk

    def contested(self, library: Library) -> frozenset[str]:
        """Return the entries that rewards alone may take away: those made in the run, while votes are not believed."""
        if self.support is None or self.trust == 1:
            return frozenset()
        return frozenset(change.id for change in changes(self.trusted, library) if change.made)

    def settled(self, library: Library, harmful: Sequence[Change], *, ended: bool = False) -> Trial:
        """Return the trial after harm was taken back from `library`, with what was seen enough trusted.

        With `ended` everything that remains is trusted.
        """
        left = changes(self.trusted, without(library, harmful))
        open_ = (
            []
            if ended
            else [one for one in left if sum(self._key(one) in seen.had for seen in self.seen) < self.enough]
        )
        return replace(self, trusted=without(without(library, harmful), open_))

    def _key(self, change: Change) -> tuple[str, str | None]:
        """Return by what a change is known. Where votes are counted, an entry keeps what was seen of it when it is
        reworded: one that comes to say the opposite is another entry (`consolidate.replacements`).
        """
        return (change.id, "") if change.made and self.support is not None else change.key

    def _finding(self, change: Change, column: Sequence[float], fitted: tuple[float, float], least: int) -> Finding:
        effect, error = fitted
        present, absent = sum(one > 0 for one in column), sum(one < 0 for one in column)
        upper = effect + _NORMAL.inv_cdf(self.confidence) * error
        judged = present + absent >= least and min(present, absent) >= FEWEST
        enough = min(present, absent) >= FEWEST
        return Finding(change, effect, upper if judged else inf, present, absent, error if enough else inf)

    def _voted(self, finding: Finding, support: float, *, closing: bool) -> Finding:
        """Return a finding with the votes on it, where it is of an entry made in this run.

        When `closing` it is judged by votes alone if it came too late for tasks to say anything.
        """
        change = finding.change
        if not change.made:
            return finding
        upper = min(finding.upper, 1.0) if closing else finding.upper
        return replace(
            finding,
            upper=upper,
            votes=self.votes.get(change.id, Votes()),
            support=support,
            trust=self.trust,
            least=AT_LAST if closing else 0.0,
        )


def changes(before: Library, after: Library) -> list[Change]:
    """Return what differs in text between two libraries, entry by entry: first those of `before`, then new ones."""
    old = {entry.id: entry for entry in before.experiences}
    new = {entry.id: entry for entry in after.experiences}
    return [
        Change(id_, old.get(id_), new.get(id_))
        for id_ in dict.fromkeys([*old, *new])
        if (id_ in old) != (id_ in new) or old[id_].text != new[id_].text
    ]


def without(library: Library, undone: Sequence[Change]) -> Library:
    """Return `library` with changes undone. An entry that comes back stands at the end."""
    back = {change.id: change.before for change in undone}
    kept = [back.pop(entry.id, entry) for entry in library.experiences]
    entries = [entry for entry in (*kept, *back.values()) if entry is not None]
    return structs.replace(library, experiences=tuple(entries))


def surplus(rewards: Sequence[float], earlier: Sequence[float | None]) -> list[float]:
    """Return what each task earned beyond what its earlier rewards lead one to expect.

    `rewards` are means of a task's rollouts, `earlier` its mean before (None: never seen). Tasks that were never
    seen are held against their own mean.
    """
    known = [(now, before) for now, before in zip(rewards, earlier, strict=True) if before is not None]
    fresh = [now for now, before in zip(rewards, earlier, strict=True) if before is None]
    mean = fmean(now for now, _ in known) if known else 0.0
    middle = fmean(before for _, before in known) if known else 0.0
    spread = sum((before - middle) ** 2 for _, before in known)
    slope = sum((now - mean) * (before - middle) for now, before in known) / spread if spread > TINY else 0.0
    level = fmean(fresh) if fresh else 0.0
    return [
        now - level if before is None else now - mean - slope * (before - middle)
        for now, before in zip(rewards, earlier, strict=True)
    ]
