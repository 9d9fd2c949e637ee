"""What leaves the store in a file, or for a model that is asked live: without secrets and personal data.

What was stored since the rules of `grammar` hold none; what is older, or was recorded, may. A file gets placeholders,
so that it keeps its form; a prompt goes without the whole entry, for a lesson with a hole in it is none. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from tfgrpo.safety import redaction
from tfgrpo.types import Experience, Library, Version


class LeftOut(NamedTuple):
    """An entry that no prompt carries, and what kind of thing it holds; never the thing itself."""

    id: str
    kind: str


def version(made: Version, ours: Iterable[str] = ()) -> tuple[Version, int]:
    """Return a version with placeholders in its lessons and its note, and how many lessons have one."""
    entries = [replace(one, text=redaction.redact(one.text, ours)) for one in made.library.experiences]
    changed = sum(before.text != after.text for before, after in zip(made.library.experiences, entries, strict=True))
    library = replace(made.library, experiences=tuple(entries))
    return replace(made, library=library, note=redaction.redact(made.note, ours)), changed


def injected(library: Library, ours: Iterable[str] = ()) -> tuple[Library, tuple[LeftOut, ...]]:
    """Return the entries of a library that a prompt may carry, and those that it may not."""
    kept: list[Experience] = []
    left_out: list[LeftOut] = []
    for one in library.experiences:
        if found := redaction.find(one.text, ours):
            left_out.append(LeftOut(one.id, found[0].kind))
        else:
            kept.append(one)
    return (replace(library, experiences=tuple(kept)) if left_out else library), tuple(left_out)


def value(found: Any, ours: Iterable[str] = ()) -> Any:
    """Return a JSON value with placeholders in its texts, keys and whole numbers; text that is JSON stays JSON."""
    if isinstance(found, dict):
        return {redaction.redact(key, ours): value(inner, ours) for key, inner in found.items()}
    if isinstance(found, list):
        return [value(inner, ours) for inner in found]
    if isinstance(found, str):
        return _text(found, ours)
    if isinstance(found, int) and not isinstance(found, bool):
        plain = redaction.redact(str(found), ours)
        return found if plain == str(found) else plain
    return found


def _text(text: str, ours: Iterable[str]) -> str:
    if text.lstrip()[:1] in ("{", "["):
        try:
            held = json.loads(text)
        except (ValueError, RecursionError):
            return redaction.redact(text, ours)
        plain = value(held, ours)
        return text if plain == held else json.dumps(plain, ensure_ascii=False)
    return redaction.redact(text, ours)
