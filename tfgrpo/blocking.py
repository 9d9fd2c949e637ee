"""Running asynchronous work from plain code, whether or not an event loop runs already, as one does in a notebook.

The work gets a loop and a thread of its own. Inside a coroutine, call what blocks through `asyncio.to_thread`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")

_BEGINS: Final = 5.0
"""Seconds in which a thread begins its work."""


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `work` to its end and return its result. Ctrl-C cancels it, waits for it, and is raised here."""
    begun: Future[Callable[[], object]] = Future()

    async def watched() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        begun.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await work()

    with ThreadPoolExecutor(1, thread_name_prefix="tfgrpo") as thread:
        try:
            return thread.submit(lambda: asyncio.run(watched())).result()
        except KeyboardInterrupt:
            # A loop that has just ended takes no calls any more, and work that never began has none to cancel.
            with suppress(RuntimeError, TimeoutError):
                begun.result(timeout=_BEGINS)()
            raise
