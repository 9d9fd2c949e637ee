"""What a set takes of an inherited library: which lessons, under which ids, with which word about them.

The word limit of training is for lessons that are being learned. Lists from elsewhere are longer by habit (of the two
that were published with the method, 13 of 73 pass 32 words), so a longer lesson is taken and said, up to
`LONGEST_TEXT`; the number of entries is bounded as in training.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tfgrpo.inheritance.documents import Inherited
from tfgrpo.library import Limits
from tfgrpo.types import Experience, Library, Version, VersionStatus

LONGEST_TEXT: Final = 2000
"""The bound in characters that a lesson written by hand has too."""

_OURS: Final = re.compile(r"e(\d{1,9})")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Admission:
    """The lessons taken, in order, under the file's ids; those refused, each with its id and reason; the ids of those
    that are longer than a learned lesson may be.
    """

    experiences: tuple[Experience, ...]
    refused: tuple[tuple[str, str], ...]
    long: tuple[str, ...]


def admit(inherited: Inherited, limits: Limits) -> Admission:
    """Return which lessons of a file are taken. White space is folded; none is ever shortened."""
    taken: dict[str, Experience] = {}
    refused: list[tuple[str, str]] = []
    for entry in inherited.experiences:
        text = " ".join(entry.text.split())
        reason = _reason(text, taken, limits)
        if reason:
            refused.append((entry.id, reason))
        else:
            taken[text.casefold()] = replace(entry, text=text)
    kept = tuple(taken.values())
    return Admission(kept, tuple(refused), tuple(one.id for one in kept if len(one.text.split()) > limits.words))


def numbered(inherited: Inherited, admission: Admission, versions: Sequence[Version], *, set_name: str) -> Library:
    """Return the library with the ids that its lessons have in the set, whose `versions` so far these are.

    An id of ours stays where the set never gave it, or where the file came out of this very set, and the set has a
    lesson of that id. Each other lesson gets an id that was never given: a foreign `G0` names a place, not a lesson.
    """
    given = max((version.library.next_id for version in versions), default=1)
    known = {entry.id for version in versions for entry in version.library.experiences}
    ours = inherited.version
    keeps = {
        entry.id
        for entry in admission.experiences
        if ours is not None
        and ((entry.id in known and ours.set == set_name) or (entry.id not in known and _number(entry.id) >= given))
    }
    next_id = max([given, *(_number(id_) + 1 for id_ in keeps if _OURS.fullmatch(id_))])
    if ours is not None and ours.set == set_name:
        next_id = max(next_id, ours.library.next_id)
    entries: list[Experience] = []
    for entry in admission.experiences:
        if entry.id in keeps:
            entries.append(entry)
        else:
            entries.append(replace(entry, id=f"e{next_id}"))
            next_id += 1
    return Library(tuple(entries), next_id)


def standing(
    inherited: Inherited, admission: Admission, versions: Sequence[Version], *, set_name: str
) -> tuple[VersionStatus, int | None, str]:
    """Return status, parent and note of the version to be made.

    A verdict is about lessons as they were compared: it comes along only with a whole and unedited export. The parent
    comes along where it is a version of this set.
    """
    ours = inherited.version
    origin = f"imported from {Path(inherited.name).name}"
    if ours is None:
        return "by hand", None, f"{origin} ({inherited.form})"
    parents = {version.version for version in versions}
    parent = ours.parent if ours.set == set_name and ours.parent in parents else None
    if inherited.intact and not admission.refused:
        return ours.status, parent, ours.note or f"{origin} ({ours.set}@{ours.version})"
    what = "in part" if inherited.intact else "edited since its export"
    return "by hand", parent, f"{origin} ({ours.set}@{ours.version}, {what})"


def _reason(text: str, taken: dict[str, Experience], limits: Limits) -> str | None:
    if not text:
        return "no text"
    if _CONTROLS.search(text):
        return "holds control characters"
    if len(text) > LONGEST_TEXT:
        return f"{len(text)} characters, {LONGEST_TEXT} are allowed"
    if text.casefold() in taken:
        return f"{taken[text.casefold()].id} says the same"
    if limits.entries is not None and len(taken) >= limits.entries:
        return f"the library is full ({limits.entries} entries); raise training.max_entries"
    return limits.fault(text)


def _number(id_: str) -> int:
    found = _OURS.fullmatch(id_)
    # An id that somebody chose by hand collides with no number.
    return int(found[1]) if found else 2**31
