"""Running asynchronous work from plain code, whether or not an event loop runs already, as one does in a notebook.

The work gets a loop and a thread of its own. Inside a coroutine, call what blocks through `asyncio.to_thread`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import Any, Final, TypeVar

T = TypeVar("T")

_BEGINS: Final = 5.0
"""Seconds in which a thread begins its work."""


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `work` to its end and return its result. Ctrl-C cancels it, waits for it, and is raised here."""
    begun: Future[Callable[[], object]] = Future()
    ended: Future[T] = Future()

    async def watched() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        begun.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await work()

    def worked() -> None:
        try:
            ended.set_result(asyncio.run(watched()))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            ended.set_exception(error)

    # No executor: an interrupt while it starts its thread makes it forget to wait for that.
    thread = Thread(target=worked, name="tfgrpo")
    try:
        thread.start()
        return ended.result()
    except KeyboardInterrupt:
        # A loop that has just ended takes no calls any more, and work that never began has none to cancel.
        with suppress(RuntimeError, TimeoutError):
            begun.result(timeout=_BEGINS)()
            wait([ended])
        raise
