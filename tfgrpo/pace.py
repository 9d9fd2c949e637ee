"""How fast one model is asked: how many calls at once, and when nobody asks at all.

A limit on rates is one for all calls of a model, so its refusal is taken for all: they pause together, for as long as
the endpoint says, and fewer go on at once afterwards. It knows neither requests nor answers, and waits by a clock that
it is given.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Protocol

LONGEST_PAUSE: Final = 120.0
"""Seconds that a header of an answer can make all calls wait."""

_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|us|s|m|h|d)")
_SECONDS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Clock(Protocol):
    """Time as `Pace` needs it."""

    def now(self) -> float:
        """Return seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class RealClock:
    """The event loop's time."""

    def now(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the headers of an answer say of a rate limit, in seconds from now; None where they say nothing."""

    retry_after: float | None = None
    exhausted: float | None = None
    """Until when no request or no token is left, by `x-ratelimit-remaining-*` and `x-ratelimit-reset-*`."""

    @property
    def wait(self) -> float | None:
        """How long to wait after a refusal: what it asks for, else the time of the reset."""
        return self.retry_after if self.retry_after is not None else self.exhausted


class Pace:
    """A window of calls at once, at most `most`, and a pause for all of them.

    The window halves at a refusal and grows by one for each window of calls that went well: additive increase,
    multiplicative decrease (Chiu and Jain 1989, "Analysis of the increase and decrease algorithms for congestion
    avoidance in computer networks"). Calls that were under way when it halved do not halve it again.
    """

    def __init__(self, most: int, clock: Clock | None = None) -> None:
        self._most = most
        self._window = float(most)
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._clock = clock or RealClock()
        self._until = 0.0
        self._halved = 0.0

    @property
    def window(self) -> int:
        """How many calls may run at once now."""
        return int(self._window)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """Wait for a place and for the end of any pause, and keep the place. Gives the time it was taken at."""
        await self._enter()
        try:
            while (left := self._until - self._clock.now()) > 0:
                await self._clock.sleep(left)
            yield self._clock.now()
        finally:
            self._running -= 1
            self._wake()

    def went_well(self) -> None:
        """Note an answer: the window grows."""
        self._window = min(float(self._most), self._window + 1.0 / self._window)
        self._wake()

    def told(self, limits: Limits) -> None:
        """Note what a good answer says: where nothing is left, all wait for the reset."""
        if limits.exhausted is not None:
            self._pause(min(limits.exhausted, LONGEST_PAUSE))

    def refused(self, seconds: float, *, began: float) -> None:
        """Note that a call, begun at `began`, met the limit: all wait so long, and fewer go on."""
        if began >= self._halved:
            self._window = max(1.0, self._window / 2)
            self._halved = self._clock.now()
        self._pause(seconds)

    def _pause(self, seconds: float) -> None:
        self._until = max(self._until, self._clock.now() + seconds)

    async def _enter(self) -> None:
        if self._running < self.window and not self._waiting:
            self._running += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            elif not place.cancelled():
                self._running -= 1
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting and self._running < self.window:
            place = self._waiting.popleft()
            if not place.done():
                self._running += 1
                place.set_result(None)


def limits(headers: Mapping[str, str]) -> Limits:
    """Read the headers of an answer. Never raises.

    `retry-after` is seconds or a date (RFC 9110 section 10.2.3), `retry-after-ms` what OpenAI's SDK reads before it;
    `x-ratelimit-reset-*` is a span as Go writes it (`6m0s`, `250ms`) or a number of seconds.
    """
    waits = [
        span(headers.get(f"x-ratelimit-reset-{kind}"))
        for kind in ("requests", "tokens")
        if _nothing(headers.get(f"x-ratelimit-remaining-{kind}"))
    ]
    known = [wait for wait in waits if wait is not None]
    milliseconds = _number(headers.get("retry-after-ms"))
    after = milliseconds / 1000 if milliseconds is not None else _after(headers.get("retry-after"))
    return Limits(after, max(known, default=None))


def span(text: str | None) -> float | None:
    """Return the seconds of a span such as `1.5`, `250ms` or `6m0s`; None for anything else."""
    if text is None:
        return None
    number = _number(text)
    if number is not None:
        return number
    parts = _PART.findall(text)
    if not parts or "".join(value + unit for value, unit in parts) != text.strip():
        return None
    return sum(float(value) * _SECONDS[unit] for value, unit in parts)


def _after(text: str | None) -> float | None:
    number = _number(text)
    if number is not None or text is None:
        return number
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (date.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None


def _nothing(text: str | None) -> bool:
    number = _number(text)
    return number is not None and number <= 0
