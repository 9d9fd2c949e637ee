"""How much of a library one step may take away: at most half of it, and never all.

A wrong lesson costs a place; an edit that empties the library costs everything that was learned, and a transcript that
talks the optimizer into it needs to succeed only once. Where edits have no bound, deletions have none either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tfgrpo import library as libraries
from tfgrpo.library import Edit, Limits
from tfgrpo.types import Library, Operation, Refusal

SHARE: Final = 0.5
"""The part of the entries that one step may delete; one may always go where another comes."""
LAST: Final = "nothing would be left of the library"


def apply(library: Library, operations: Sequence[Operation], limits: Limits) -> Edit:
    """Apply operations like `library.apply`, without the deletions that go too far.

    Of those that the step may make, the ones that rest on most groups are taken, of equals the first.
    """
    deletions = [one for one in operations if one.operation == "delete"]
    if limits.edits is None or not deletions:
        return libraries.apply(library, operations, limits=limits)
    most = max(1, int(len(library) * SHARE))
    kept = sorted(deletions, key=lambda one: -len(one.sources))[:most]
    edit = libraries.apply(library, _without(operations, [one for one in deletions if one not in kept]), limits=limits)
    reason = f"one step may delete {most} of {len(library)} entries, and others have more support"
    if library.experiences and not edit.library.experiences:
        edit, kept, reason = libraries.apply(library, _without(operations, deletions), limits=limits), [], LAST
    over = tuple(Refusal(one, reason) for one in deletions if one not in kept)
    return replace(edit, refused=(*edit.refused, *over))


def _without(operations: Sequence[Operation], some: Sequence[Operation]) -> list[Operation]:
    return [one for one in operations if one not in some]
