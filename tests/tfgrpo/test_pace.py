from __future__ import annotations

import asyncio

import pytest

from tfgrpo.pace import Limits, Pace, limits, span


class Clock:
    """Time that passes when somebody sleeps, and at no other time."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time = max(self.time, self.time + seconds)
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5", 1.5), ("250ms", 0.25), ("6m0s", 360.0), ("1h2m3s", 3723.0), ("soon", None), ("1s?", None), (None, None)],
)
def test_a_span_is_read_as_providers_write_it(text: str | None, seconds: float | None) -> None:
    assert span(text) == seconds


def test_a_refusal_says_how_long_to_wait_in_one_of_three_ways() -> None:
    exhausted = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2s"}
    assert limits({"retry-after": "3", **exhausted}).wait == 3.0
    assert limits({"retry-after-ms": "1500", "retry-after": "9"}).wait == 1.5
    assert limits(exhausted).wait == 2.0


def test_a_retry_after_may_be_a_date() -> None:
    assert limits({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}).wait == 0.0


def test_what_is_left_is_no_reason_to_wait() -> None:
    assert limits({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "9s"}) == Limits()


async def test_a_pause_is_one_for_all() -> None:
    clock = Clock()
    pace = Pace(4, clock)
    pace.refused(30.0, began=clock.now())

    async def call() -> float:
        async with pace.turn() as began:
            return began

    assert await asyncio.gather(*(call() for _ in range(6))) == [130.0] * 6


async def test_the_window_halves_once_for_calls_that_were_under_way_together() -> None:
    clock = Clock()
    pace = Pace(16, clock)
    began = clock.now()
    clock.time += 1
    for _ in range(5):
        pace.refused(1.0, began=began)
    assert pace.window == 8
    pace.refused(1.0, began=clock.now())
    assert pace.window == 4


async def test_the_window_grows_by_one_a_window_and_never_beyond_what_is_configured() -> None:
    clock = Clock()
    pace = Pace(4, clock)
    pace.refused(0.0, began=clock.now())
    windows = []
    for _ in range(20):
        pace.went_well()
        windows.append(pace.window)
    assert (windows[0], windows[2], windows[-1]) == (2, 3, 4)


async def test_the_window_never_closes() -> None:
    clock = Clock()
    pace = Pace(2, clock)
    for _ in range(10):
        clock.time += 1
        pace.refused(0.0, began=clock.now())
    assert pace.window == 1


async def test_whoever_gives_up_waiting_gives_the_place_to_the_next() -> None:
    pace = Pace(1, Clock())
    release, served = asyncio.Event(), []

    async def call(name: str) -> None:
        async with pace.turn():
            served.append(name)
            await release.wait()

    first, second, third = (asyncio.create_task(call(name)) for name in "abc")
    await asyncio.sleep(0)
    second.cancel()
    release.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert served == ["a", "c"]
