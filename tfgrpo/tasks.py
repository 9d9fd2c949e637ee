"""Running many things at once and having their results in the order they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def gather(work: Iterable[Awaitable[T]]) -> list[T]:
    """Return all results, in the order of `work` and not of completion.

    When one fails the others still end first, so that what they paid for is kept; then the first failure in order is
    raised.
    """
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
