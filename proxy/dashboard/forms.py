"""What a page's form sends: bytes to checked fields, or a refusal that names the field. It knows no page."""

from __future__ import annotations

import asyncio
import math
from urllib.parse import parse_qsl

from starlette.requests import Request

from proxy import json_bodies
from proxy.errors import ProxyError

MOST_BYTES = 1 << 20
"""Of a form, but for one that may carry a data set."""

DATASET_BYTES = 12 << 20
MOST_FIELDS = 2000
LONGEST_REASON = 1000
_MOST_DIGITS = 9
_LOST = "\N{REPLACEMENT CHARACTER}"


class Form:
    """The fields of a form or a query, each as often as it was sent."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    @classmethod
    async def sent(cls, request: Request, *, most: int = MOST_BYTES) -> Form:
        """Read the body of a request, of `most` bytes."""
        raw = await json_bodies.read(request.receive, limit=most)
        # Megabytes take a while: that is not for the loop that requests run on.
        return cls(_pairs(raw) if most <= MOST_BYTES else await asyncio.to_thread(_pairs, raw))

    @classmethod
    def query(cls, request: Request) -> Form:
        """Read the query of a request."""
        return cls(_pairs(request.scope["query_string"]))

    def all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return self._values.get(name, [])

    def text(self, name: str, *, longest: int | None = LONGEST_REASON) -> str:
        """Return a field that is sent once, or the empty text; `longest` None: of any length."""
        values = self.all(name)
        if len(values) > 1:
            raise refused(name, "stands there more than once")
        value = values[0].strip() if values else ""
        if longest is not None and len(value) > longest:
            raise refused(name, f"is longer than {longest} characters")
        return value

    def number(self, name: str) -> int | None:
        """Return a field that is a number of a version or a revision; None when it is empty."""
        value = self.text(name)
        if not value:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS):
            raise refused(name, f"is {value[:40]!r}; it takes a whole number")
        return int(value)

    def share(self, name: str) -> float:
        """Return a field in percent as a share in [0, 1]; 0 when it is empty."""
        value = self.text(name)
        try:
            percent = float(value or "0")
        except ValueError:
            percent = math.nan
        if not 0 <= percent <= 100:  # noqa: PLR2004 - percent
            raise refused(name, f"is {value[:40]!r}; it takes a number of percent from 0 to 100")
        return percent / 100


def refused(name: str, said: str) -> ProxyError:
    """Return the refusal of a field."""
    return ProxyError(400, f"{name} {said}", code="invalid_value", param=name)


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    if raw.count(b"&") >= MOST_FIELDS:
        raise ProxyError(400, f"the form has more than {MOST_FIELDS} fields", code="invalid_value")
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise refused(_unreadable(raw), "is not UTF-8 text") from error
    for name, value in pairs:
        if "\x00" in name + value:
            raise refused(name.replace("\x00", ""), "holds a zero byte, which is no text")
    return pairs


def _unreadable(raw: bytes) -> str:
    """Return the name of the first field that is no text, as far as that can be read."""
    loose = parse_qsl(raw.decode("ascii", "replace"), keep_blank_values=True)
    return next(name for name, value in loose if _LOST in name + value).replace(_LOST, "?")
