"""What a file turns out to hold, and JSON read so that an error says where it is and no key is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tfgrpo.errors import UsageError
from tfgrpo.types import Experience, Version

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Inherited:
    """The lessons of a file, under the ids that the file gives them.

    `version` is what our own format says of them, None for a foreign one; `intact` whether they are as they were
    exported. `policy_model` is the model they were learned with, where the file knows it.
    """

    name: str
    form: str
    experiences: tuple[Experience, ...]
    version: Version | None = None
    intact: bool = False
    policy_model: str | None = None


def json_object(text: str, name: str) -> JSON:
    """Return a JSON object; UsageError, with line or key, for anything else or a key that stands in one twice."""
    try:
        values = json.loads(text, object_pairs_hook=_unique)
    except _Twice as error:
        raise UsageError(f"{name}: the key {error} stands there twice, and one would be lost; rename one") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{name}, line {error.lineno}: not JSON ({error.msg}, column {error.colno})") from error
    except (RecursionError, ValueError) as error:
        raise UsageError(f"{name}: its JSON is nested too deep, or holds a number too long to read") from error
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{name}: holds half of a surrogate pair (such as \\ud800), which is no text") from error
    if not isinstance(values, dict):
        raise UsageError(f'{name}: must hold an object such as {{"G0": "a lesson"}}, or what `sets export` writes')
    return values


class _Twice(Exception):  # noqa: N818 - control flow of this module only
    """A key that stands in an object twice."""


def _unique(pairs: Sequence[tuple[str, Any]]) -> JSON:
    values: JSON = {}
    for key, value in pairs:
        if key in values:
            raise _Twice(repr(key))
        values[key] = value
    return values
