"""What a library is without the entries that rest on withdrawn evidence. Pure.

An entry that rests on it goes whole, whatever else it rests on: nobody can tell which of its words came from where.
Where the versions it descends from hold an older text of it that does not rest on it, the newest such text comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tfgrpo.types import Experience, Library, Version

Rests: TypeAlias = Callable[[Experience], bool]
"""Whether an entry rests on what is withdrawn."""

Said: TypeAlias = tuple[str, str]
"""An entry as something was said of it: its id and its text then."""


class Withdrawal(msgspec.Struct, frozen=True):
    """What a withdrawal comes to in one set.

    `base` is the version that gets a successor, with `library` in it: the live one, else the candidate, else the
    newest; None when none of these holds such an entry. `said` are the entries that may not be deployed any more,
    `versions` those that hold one. `live` and `candidate`: whether that version is among them.
    """

    set: str
    base: int | None
    library: Library
    gone: tuple[Experience, ...]
    restored: tuple[tuple[Experience, Experience], ...]
    said: frozenset[Said]
    versions: tuple[int, ...]
    live: bool
    candidate: bool


def group_of(source: str) -> str:
    """Return the group that a source of an entry names: sources of logged traffic say `GROUP@VERSION`."""
    group, at, version = source.rpartition("@")
    return group if at and (version.isdigit() or version == "mixed") else source


def holds(library: Library, said: Collection[Said]) -> tuple[str, ...]:
    """Return the ids of the entries that are still what they were said to be."""
    return tuple(one.id for one in library.experiences if (one.id, one.text) in said)


def remaining(library: Library, said: Collection[Said]) -> tuple[Library, tuple[str, ...]]:
    """Return what is left of a stored library for whoever is to get it, and the ids of the entries that are not."""
    gone = holds(library, said)
    kept = tuple(one for one in library.experiences if one.id not in gone)
    return (replace(library, experiences=kept) if gone else library), gone


def planned(
    versions: Sequence[Version], rests: Rests, *, live: int | None = None, candidate: int | None = None
) -> Withdrawal | None:
    """Return what a withdrawal comes to in a set with these versions; None when no entry rests on it."""
    said = _said(versions, rests)
    holding = {one.version for one in versions if holds(one.library, said)}
    if not said:
        return None
    choice = (live, candidate, versions[-1].version)
    base = next((number for number in choice if number in holding), None)
    before = Library() if base is None else next(one.library for one in versions if one.version == base)
    after = before if base is None else without(_line(versions, base), said)
    now = {one.id: one for one in after.experiences}
    return Withdrawal(
        set=versions[0].set,
        base=base,
        library=after,
        gone=tuple(one for one in before.experiences if one.id not in now),
        restored=tuple((one, now[one.id]) for one in before.experiences if one.id in now and now[one.id] != one),
        said=said,
        versions=tuple(sorted(holding)),
        live=live in holding,
        candidate=candidate in holding,
    )


def without(line: Sequence[Version], said: Collection[Said]) -> Library:
    """Return the library of the first of `line` (a version, then those it descends from) without these entries."""
    kept = []
    for entry in line[0].library.experiences:
        same = (old for one in line for old in one.library.experiences if old.id == entry.id)
        fit = next((old for old in same if (old.id, old.text) not in said), None)
        if fit is not None:
            kept.append(fit)
    return replace(line[0].library, experiences=tuple(kept))


def _said(versions: Iterable[Version], rests: Rests) -> frozenset[Said]:
    """Return the entries that rest on it wherever they stand: a text that a version has without it is its own."""
    entries = [one for version in versions for one in version.library.experiences]
    clean = {(one.id, one.text) for one in entries if not rests(one)}
    return frozenset((one.id, one.text) for one in entries if rests(one)) - clean


def _line(versions: Sequence[Version], number: int) -> list[Version]:
    by_number = {one.version: one for one in versions}
    line = []
    found = by_number.get(number)
    while found is not None:
        line.append(found)
        found = by_number.get(found.parent) if found.parent else None
    return line
