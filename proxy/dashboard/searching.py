"""Looking for a text in recorded bodies. They are compressed, so each has to be opened: a search has a budget of time
and of bytes, and says how far it came. It knows no page.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from tfgrpo import dialects
from tfgrpo.store import Store
from tfgrpo.store.browsing import Found, Place
from tfgrpo.types import Bodies, Exchange

MOST_BYTES: Final = 24 << 20
"""Of opened bodies, for one page."""

AT_ONCE: Final = 100
"""Rows whose bodies are asked for together."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Rows(Generic[_T]):
    """How rows are come by: `page(behind, limit, seconds)`, the exchange to open for each, where a row stands."""

    page: Callable[[Place | None, int, float], Found[_T]]
    exchanges: Callable[[Sequence[_T]], Sequence[Exchange | None]]
    place: Callable[[_T], Place]


def search(store: Store, text: str, rows: Rows[_T], behind: Place | None, *, limit: int, seconds: float) -> Found[_T]:
    """Return the rows whose exchange says `text`, case aside, until `limit` are found or the budget is out."""
    needle, until, left = _Needle(text), time.monotonic() + seconds, MOST_BYTES
    found: list[_T] = []
    while True:
        page = rows.page(behind, AT_ONCE, max(until - time.monotonic(), 0.0))
        for row, exchange, kept in _opened(store, rows, page.rows):
            behind = rows.place(row)
            left -= len(kept.request) + len(kept.response)
            if needle.stands_in(exchange, kept):
                found.append(row)
            if len(found) == limit:
                return Found(found, behind)
            if left < 0 or time.monotonic() > until:
                return Found(found, behind, float(behind[0]))
        behind = page.next
        if behind is None:
            return Found(found, None)
        if time.monotonic() > until:
            return Found(found, behind, float(behind[0]))


def _opened(store: Store, rows: Rows[_T], some: Sequence[_T]) -> Iterator[tuple[_T, Exchange, Bodies]]:
    """Yield those rows that have bodies, in their order, each with its exchange."""
    pairs = zip(some, rows.exchanges(some), strict=True)
    named = {exchange.id: (row, exchange) for row, exchange in pairs if exchange is not None}
    for name, kept in store.browsing.bodies(list(named)):
        yield (*named[name], kept)


class _Needle:
    """A text in the spellings that JSON has for it."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        spellings = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], text}
        self._spellings = [one.encode().lower() for one in spellings]

    def stands_in(self, exchange: Exchange, kept: Bodies) -> bool:
        """Whether the request or the answer says it. A stream tears words apart, so that is put together first."""
        request = dialects.decoded(kept.request, kept.request_encoding) or b""
        response = dialects.decoded(kept.response, kept.response_encoding) or b""
        if self._in(request) or self._in(response):
            return True
        if not kept.response_type.startswith("text/event-stream"):
            return False
        return any(self._text in said.casefold() for said in _streamed(exchange, response, kept.response_type))

    def _in(self, body: bytes) -> bool:
        lowered = body.lower()
        return any(one in lowered for one in self._spellings)


def _streamed(exchange: Exchange, response: bytes, media_type: str) -> Iterator[str]:
    dialect = dialects.by_name(exchange.dialect)
    read = None if dialect is None else dialect.read_response(response, media_type)
    for choice in () if read is None else read.choices:
        yield choice.message.text
        yield from (call.arguments for call in choice.message.tool_calls)
