"""A quorum for lessons: how many groups, of how many principals, must say a thing before it may be active.

A group backs an entry when a proposal of its own says nearly the same, or when its lessons, held against the library
by themselves, confirm the entry. What another group said is never in sight there, so nobody can answer for others. What
is below the quorum is pending: remembered with the groups that back it, and completed by later ones. An entry that is
active stays as it is until an edit of it has a quorum of its own. Pure; it knows no store and no model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from tfgrpo import library as libraries
from tfgrpo.consolidate import alike
from tfgrpo.library import Limits
from tfgrpo.steps import Learned, Step
from tfgrpo.types import Experience, Library, Operation, Pending, Refusal

MOST_CARRIED: Final = 20
"""Pending lessons that a run is shown beside the library: each costs tokens in every prompt."""
MOST_KEPT: Final = 500
"""Pending lessons of a set that are remembered; beyond them the least backed go."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """What is asked for, and the principals who stand behind each group of a run, by its key."""

    groups: int
    principals: int
    makers: Mapping[str, Collection[str]] = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    """What is active, by text."""
    alone: bool = False
    """Whether one principal made all there is, and a second one is not asked for."""

    def met(self, groups: Collection[str], known: Mapping[str, Collection[str]] | None = None) -> bool:
        """Whether these groups suffice; of one task under several versions one counts.

        `known`: the principals of groups of earlier runs.
        """
        return not self.asks or self.lacks(groups, known) == (0, 0)

    def lacks(self, groups: Collection[str], known: Mapping[str, Collection[str]] | None = None) -> tuple[int, int]:
        """Return how many groups, and how many principals, are still to say what these groups say."""
        tasks = {key.partition("@")[0] for key in groups}
        behind = self.behind(groups, known or {})
        return max(0, self.groups - len(tasks)), max(0, self.principals - len(behind))

    @property
    def asks(self) -> bool:
        """Whether it asks for more than any lesson has."""
        return self.groups > 1 or self.principals > 1

    def behind(self, groups: Collection[str], known: Mapping[str, Collection[str]]) -> set[str]:
        """Return the principals who stand behind these groups."""
        return {one for key in groups for one in self.makers.get(key, known.get(key, ()))}

    def __str__(self) -> str:
        return f"{counted(self.groups, 'group')} of {counted(self.principals, 'principal')}"


@dataclass(frozen=True, slots=True)
class Ballot:
    """What the lessons of one group call for against a library, by themselves."""

    group: str
    lessons: int
    operations: tuple[Operation, ...]

    @property
    def confirmed(self) -> set[str]:
        """The entries it confirms; none where it names more than it has lessons: that is no choice between them."""
        named = {id_ for one in self.operations if one.operation in ("keep", "update") for id_ in one.ids}
        return named if len(named) <= self.lessons else set()


@dataclass(frozen=True, slots=True)
class Settled:
    """What may be active, what is pending, and the edits of active entries that lacked a quorum."""

    library: Library
    pending: tuple[Pending, ...]
    held: tuple[Refusal, ...]


def backing(
    library: Library, proposals: Iterable[Operation], ballots: Iterable[Ballot] = ()
) -> dict[str, frozenset[str]]:
    """Return the groups that back each entry of `library`, by its text."""
    groups: dict[str, set[str]] = defaultdict(set)
    for ballot in ballots:
        for id_ in ballot.confirmed:
            groups[id_].add(ballot.group)
    said = [(one.text, one.sources) for one in proposals if one.text]
    for entry in library.experiences:
        groups[entry.id] |= {key for text, sources in said if alike(text, entry.text) for key in sources}
    return {entry.text: frozenset(groups[entry.id]) for entry in library.experiences}


def opposition(proposals: Iterable[Operation]) -> dict[str, frozenset[str]]:
    """Return the groups that want an entry away, by its id."""
    groups: dict[str, set[str]] = defaultdict(set)
    for one in proposals:
        if one.operation == "delete":
            for id_ in one.ids:
                groups[id_] |= set(one.sources)
    return {id_: frozenset(some) for id_, some in groups.items()}


def carrying(library: Library, pending: Sequence[Pending], limits: Limits) -> Library:
    """Return the library with the best backed of what is pending, as a run works with it."""
    room = MOST_CARRIED if limits.entries is None else max(0, min(MOST_CARRIED, limits.entries - len(library)))
    held = {entry.text for entry in library.experiences}
    chosen = [one for one in pending if one.text not in held][:room]
    entries = tuple(
        Experience(f"e{number}", one.text, one.sources, one.support)
        for number, one in enumerate(chosen, library.next_id)
    )
    return Library((*library.experiences, *entries), library.next_id + len(entries))


def settle(
    active: Library, learned: Learned, quorum: Quorum, *, waiting: Sequence[Pending], run: str, limits: Limits
) -> Settled:
    """Divide what a run came to into what may be active and what is pending.

    `active` is the deployed library, `waiting` what was pending before the run.
    """
    return _Settling(active, learned, quorum, waiting, run).settled(limits)


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number} {what}{'' if number == 1 else 's'}"


class _Settling:
    """One division: evidence of this run and of those before it, by what texts say."""

    def __init__(self, active: Library, learned: Learned, quorum: Quorum, waiting: Sequence[Pending], run: str) -> None:
        self._active, self._learned, self._quorum, self._waiting, self._run = active, learned, quorum, waiting, run
        self._known = {key: makers for one in waiting for key, makers in one.backing.items()}
        self._said = [
            *((text, groups) for step in learned.steps for text, groups in step.backing.items() if groups),
            *((one.text, frozenset(one.backing)) for one in waiting),
        ]
        self._now = {entry.id: entry for entry in learned.library.experiences}

    def settled(self, limits: Limits) -> Settled:
        """Divide."""
        before = {entry.id: entry for entry in self._active.experiences}
        pending: list[Pending] = []
        kept: list[Experience] = []
        held: list[Refusal] = []
        for old in self._active.experiences:
            new = self._now.get(old.id)
            if new is None:
                if not self._may_go(old.id):
                    kept.append(old)
                    held.append(Refusal(Operation("delete", (old.id,)), f"fewer than {self._quorum} want it away"))
            elif new.text == old.text:
                kept.append(new)
            elif self._met(new.text):
                kept.append(self._backed(new))
            else:
                kept.append(old)
                pending.append(self._pending(new))
        for new in self._learned.library.experiences:
            if new.id not in before:
                if self._met(new.text):
                    kept.append(self._backed(new))
                else:
                    pending.append(self._pending(new))
        library = libraries.fit(Library(tuple(kept), self._learned.library.next_id), limits).library
        return Settled(library, self._remembered(pending), tuple(held))

    def _evidence(self, text: str) -> set[str]:
        return {key for said, groups in self._said if said == text or alike(said, text) for key in groups}

    def _met(self, text: str) -> bool:
        return self._quorum.met(self._evidence(text), self._known)

    def _backed(self, entry: Experience) -> Experience:
        more = sorted(self._evidence(entry.text) - set(entry.sources)) if self._quorum.asks else ()
        return replace(entry, sources=(*entry.sources, *more)) if more else entry

    def _pending(self, entry: Experience) -> Pending:
        groups = sorted(self._evidence(entry.text))
        runs = [run for one in self._waiting if alike(one.text, entry.text) for run in one.runs]
        return Pending(
            entry.text,
            tuple(dict.fromkeys([*entry.sources, *groups])),
            entry.support,
            {key: tuple(sorted(self._quorum.behind((key,), self._known))) for key in groups},
            tuple(dict.fromkeys([*runs, self._run])),
        )

    def _remembered(self, pending: Sequence[Pending]) -> tuple[Pending, ...]:
        """Return what is pending now: the new, and of the old what nothing has taken up; the best backed first."""
        texts = [entry.text for entry in self._learned.library.experiences]
        left = [one for one in self._waiting if not any(alike(one.text, text) or one.text == text for text in texts)]
        found = {one.text: one for one in (*left, *pending)}
        ranked = sorted(found.values(), key=lambda one: (-len(one.principals), -len(one.backing)))
        return tuple(ranked[:MOST_KEPT])

    def _may_go(self, id_: str) -> bool:
        """Whether an active entry may be taken away: enough groups want it, or its merged wording is active."""
        steps: Sequence[Step] = self._learned.steps
        against = {key for step in steps for key in step.opposition.get(id_, ())}
        if self._quorum.met(against):
            return True
        merged = (one.ids[0] for step in steps for one in step.applied if one.operation == "merge" and id_ in one.ids)
        return any(target in self._now and self._met(self._now[target].text) for target in merged)
