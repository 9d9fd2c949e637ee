"""The hash that ties each row of a set's history to the row before. Pure, and the same on every database.

A row is hashed as the JSON of its values, keys sorted, every other character than ASCII escaped: bytes that depend on
nothing but the values. Whoever changes, removes or puts in a row breaks the chain from there on; whoever can write the
database may make the whole chain anew, so the newest hash belongs where they cannot write (docs/security.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

HASHED: Final = (
    "set",
    "number",
    "action",
    "reason",
    "actor",
    "created_at",
    "revision",
    "live",
    "candidate",
    "shares",
    "effective",
    "undone",
    "version",
    "entries",
    "contents",
    "previous",
)
"""What of a row is hashed; never changed, for old rows are verified by it."""


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def sealed(row: Mapping[str, Any], *, number: int, previous: str) -> dict[str, Any]:
    """Return a row with its place in the chain: `previous` is the hash of the row before, "" for the first.

    Its texts lose NUL, which PostgreSQL would replace after the hash was made.
    """
    plain = {name: _storable(value) for name, value in row.items()}
    made: dict[str, Any] = {**dict.fromkeys(HASHED), **plain, "number": number, "previous": previous}
    made["created_at"] = float(made["created_at"])
    return {**made, "hash": digest(_canonical(made))}


def fault(rows: Sequence[Mapping[str, Any]]) -> tuple[int, str] | None:
    """Return the number of the first of a set's rows, in order, that does not fit, and why; None: all fit."""
    previous = ""
    for number, row in enumerate(rows, start=1):
        if row["number"] != number:
            return number, f"it is missing; number {row['number']} comes in its place"
        if row["previous"] != previous:
            return number, "it does not follow from the row before"
        if digest(_canonical(row)) != row["hash"]:
            return number, "it was changed after it was written"
        previous = row["hash"]
    return None


def seal(values: Mapping[str, Any]) -> str:
    """Return the hash of named values, as a database keeps them."""
    return digest(_json({name: _storable(value) for name, value in values.items()}))


def _canonical(row: Mapping[str, Any]) -> str:
    return _json({name: row[name] for name in HASHED})


def _json(values: Mapping[str, Any]) -> str:
    # Only what somebody put in by hand has no JSON, such as bytes: its hash is no row's.
    return json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=repr)


def _storable(value: Any) -> Any:
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
