"""The names in the tools that a recorded request offers: of the tools, and of what they are called with.

It reads the APIs alike, for all keep tools in a list. Descriptions are passed over: they are prose, often of somebody
else. No bytes make it raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tfgrpo.dialects import json_reading as read

_LISTS: Final = ("tools", "functions")
_NAMING: Final = frozenset({"name", "type", "server_label", "enum", "required", "allowed_tools"})
"""Members whose texts are names."""
_DEEPEST: Final = 30


def offered(body: bytes) -> frozenset[str]:
    """Return the names in the tools of a request, none where it offers none."""
    fields = read.mapping(body) or {}
    return frozenset(name for member in _LISTS for name in _names(fields.get(member), 0))


def _names(found: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(found, list):
        for one in found:
            yield from _names(one, depth + 1)
    elif isinstance(found, dict):
        for key, value in found.items():
            if key in _NAMING:
                yield from _texts(value)
            if key == "properties" and isinstance(value, dict):
                yield from value
            yield from _names(value, depth + 1)


def _texts(value: Any) -> Iterator[str]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str):
            yield one
