"""A library as a person sends it: texts, some with the ids they know, become the next version of a set.

Pure. An entry keeps its id and its provenance when its id is sent along; an entry without one gets a fresh id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace
from pydantic import field_validator

from proxy.errors import ProxyError
from proxy.json_bodies import Body
from proxy.settings import SET_NAME
from tfgrpo.types import Experience, Library, Version

LONGEST_TEXT = 2000
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_OURS = re.compile(r"e(\d{1,9})")
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Lesson(Body):
    """One experience."""

    text: str
    id: str | None = None

    @field_validator("text")
    @classmethod
    def _one_line(cls, value: str) -> str:
        text = value.strip()
        if not 0 < len(text) <= LONGEST_TEXT:
            raise ValueError(f"must hold 1 to {LONGEST_TEXT} characters")
        if _BREAKS.search(text):
            raise ValueError("must be one line of printable characters")
        return text

    @field_validator("id")
    @classmethod
    def _known_form(cls, value: str | None) -> str | None:
        if value is not None and not ID.fullmatch(value):
            raise ValueError("must be letters, digits, '.', '_' and '-', at most 64")
        return value


def set_name(name: str) -> str:
    """Return a name that a request can ask for.

    Raises:
        ProxyError: 400, it is none: a version under it could never be served.
    """
    if not SET_NAME.fullmatch(name):
        said = f"{name[:80]!r} is no name of a set: lower-case letters, digits, '.', '_' and '-', at most 64"
        raise ProxyError(400, f"set {said}", code="invalid_value", param="set")
    return name


def library(lessons: Sequence[Lesson], versions: Sequence[Version], *, parent: int | None) -> Library:
    """Return the library of these lessons. `versions` are those of the set so far, in order.

    Raises:
        ProxyError: 400, an id stands there twice.
    """
    # The parent's entries count, then the newest of that id.
    ordered = sorted(versions, key=lambda version: version.version == parent)
    known = {entry.id: entry for version in ordered for entry in version.library.experiences}
    sent: set[str] = set()
    numbers = [int(found.group(1)) for lesson in lessons if (found := _OURS.fullmatch(lesson.id or ""))]
    next_id = max([1, *(version.library.next_id for version in versions), *(number + 1 for number in numbers)])
    entries: list[Experience] = []
    for place, lesson in enumerate(lessons):
        if lesson.id is not None and lesson.id in sent:
            param = f"experiences[{place}].id"
            raise ProxyError(400, f"{param}: {lesson.id!r} stands there twice", code="invalid_value", param=param)
        sent |= {lesson.id} if lesson.id is not None else set()
        if lesson.id is None:
            entries.append(Experience(f"e{next_id}", lesson.text))
            next_id += 1
        else:
            entries.append(replace(known.get(lesson.id, Experience(lesson.id, "")), text=lesson.text))
    return Library(tuple(entries), next_id)
