"""Libraries as files, so that what was learned elsewhere is not lost: `read` one in, `write` a version out.

`own` is our format, with everything that is known of a version; `foreign` holds the reference implementation's two;
`markdown` is for people. All are pure: a file's text goes in, values come out, nothing in it is expanded or run.
`admission` says what of it a set takes. Nothing here knows the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tfgrpo.errors import UsageError
from tfgrpo.inheritance import foreign, markdown, own
from tfgrpo.inheritance.documents import Inherited as Inherited
from tfgrpo.inheritance.documents import json_object
from tfgrpo.types import Version

MOST_BYTES: Final = 10_000_000
"""A larger file is no experience library."""

WRITERS: Final[Mapping[str, Callable[[Version], str]]] = {
    "json": own.write,
    "markdown": markdown.write,
    "reference": foreign.write_flat,
    "agent-yaml": foreign.write_agent,
}
"""How a version is written, by the name of the format."""


def load(path: Path) -> Inherited:
    """Return what a file holds; see `read`.

    Raises:
        UsageError: it cannot be read, or is none of the formats; the message names the line or the key.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} has more than {MOST_BYTES:,} bytes; that is no experience library")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return read(text, name=str(path))


def read(text: str, *, name: str) -> Inherited:
    """Return the lessons of a file's text: YAML where `name` ends in .yaml or .yml, else JSON of either kind.

    Raises:
        UsageError: it is none of the formats; the message names the line or the key.
    """
    if name.endswith((".yaml", ".yml")):
        return foreign.read_agent(text, name)
    values = json_object(text, name)
    return own.read(values, name) if "format" in values else foreign.read_flat(values, name)


def write(version: Version, form: str) -> str:
    """Return a version in one of the formats of `WRITERS`."""
    return WRITERS[form](version)
