"""Where a list goes on: a place in it as text, and back. It knows no list; a place is a time and then names.

A time alone is none: several rows may begin at one moment, and a page may end between them.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Final

from tfgrpo.store.browsing import Place

LONGEST: Final = 4_000
"""Characters of a place's text; an id of a thousand characters has room in it."""


def written(place: Place) -> str:
    """Return a place as text that stands in an address as it is."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def read(text: str, parts: int) -> Place:
    """Return the place that a text says, of `parts` parts; ValueError for any other text."""
    if len(text) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    return checked(json.loads(raw), parts)


def checked(found: Any, parts: int) -> Place:
    """Return a place of what JSON said: a number, then texts, `parts` in all; ValueError or TypeError else.

    OverflowError for a number that no float holds.
    """
    at, *names = found
    if len(names) != parts - 1 or isinstance(at, bool | str) or not math.isfinite(float(at)):
        raise ValueError("not a place")
    for name in names:
        # Half a character is none that a store can compare.
        if not isinstance(name, str) or "\0" in name:
            raise ValueError("not a place")
        name.encode()
    return (float(at), *names)
