"""Lengths of time as people write them in a configuration."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

DAY: Final = 86400
_DURATION: Final = re.compile(r"(\d{1,6})\s*(s|m|h|d)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": DAY}


def _seconds(value: Any) -> Any:
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if isinstance(value, str) and found is None:
        raise ValueError(f"{value!r} is no duration: 90s, 30m, 24h, 2d, or a number of seconds")
    return value if found is None else int(found.group(1)) * _SECONDS[found.group(2)]


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=366 * DAY, allow_inf_nan=False)]
"""A duration of at most a year, as seconds; a text such as `24h` is one too."""

Age = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=100 * 366 * DAY, allow_inf_nan=False)]
"""The same, of at most a century."""
