"""Tolerant reading of JSON that others wrote. Nothing here raises on any bytes."""

from __future__ import annotations

import json
from typing import Any

import msgspec

# Of floats with large exponents the reader's own parsing takes ten times as long as Python's: megabytes of them would
# hold up a worker for seconds.
_DECODER = msgspec.json.Decoder(float_hook=float)

_MOST_DIGITS = 4000
"""Longer integers are kept as text: Python refuses to read or write those above 4,300 digits."""

_MOST = 1_000_000_000
"""A count above it is a mistake, and a number that some stores refuse."""

_MOST_CHOICES = 128
"""What the APIs allow `n` to be."""


def value(data: bytes) -> Any:
    """Return the JSON value, or None when it is none.

    What the fast reader refuses and others accept (lone surrogates, NaN, very long numbers) is read by the standard
    library. Of duplicate keys the last counts, in both.
    """
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(data.decode("utf-8"), parse_int=_integer)
    except (ValueError, RecursionError):
        return None


def mapping(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object, or None when it is none."""
    found = value(data)
    return found if isinstance(found, dict) else None


def text(found: Any) -> str:
    """Return the value if it is text, else ""."""
    return found if isinstance(found, str) else ""


def text_or_none(found: Any) -> str | None:
    """Return the value if it is text with something in it."""
    return found if isinstance(found, str) and found else None


def count(found: Any) -> int | None:
    """Return the value if it is a whole number that can count something."""
    whole = isinstance(found, int) and not isinstance(found, bool)
    return found if whole and 0 <= found <= _MOST else None


def choices(found: Any) -> int:
    """Return how many answers `n` asks for; what is no number of them asks for one."""
    return min(max(count(found) or 1, 1), _MOST_CHOICES)


def session(fields: dict[str, Any]) -> str | None:
    """Return `metadata.session_id` of a request."""
    metadata = fields.get("metadata")
    return text_or_none(metadata.get("session_id")) if isinstance(metadata, dict) else None


def mappings(found: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; what is no list has none."""
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits
