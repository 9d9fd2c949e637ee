"""One training at a time for a store: a lease that is renewed while a run lives, and the run's row.

A run that was killed leaves its lease behind; it is taken over at once where the process is known to be gone, else
when it has run out. Whoever wants a run to end leaves that wish in the store (`Runs.ask_to_stop`): the run may be on
another machine, and a process's number may be another's by now.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from tfgrpo.errors import Conflict, NotFound
from tfgrpo.store import Runs

NAME: Final = "training"
SECONDS: Final = 20.0
RENEW_EVERY: Final = 2.0


def take(runs: Runs, *, set_name: str, arguments: dict[str, Any]) -> str:
    """Start a run: take the lease, record the run, return its id. Conflict when another run holds the lease."""
    run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    if not runs.acquire(NAME, run_id, SECONDS):
        _free(runs)
        if not runs.acquire(NAME, run_id, SECONDS):
            raise Conflict(
                f"training run {runs.holder(NAME)} is under way on this store; one runs at a time: wait for it, or "
                "see `tfgrpo runs list`"
            )
    for left in (run for run in runs.list() if run.status == "running"):
        runs.finish(left.id, status="failed", result={"error": "the process ended without a word"})
    where = {"host": socket.gethostname(), "pid": os.getpid()}
    runs.start(run_id, set_name=set_name, arguments={**arguments, **where}, started_at=time.time())
    return run_id


@asynccontextmanager
async def kept(runs: Runs, run_id: str, progress: Callable[[], dict[str, Any]]) -> AsyncIterator[None]:
    """Renew the lease and record progress for as long as the body runs, or until someone asks the run to stop.

    Raises:
        Conflict: The lease ran out, while this process did not run, and another training took it.
    """
    body = asyncio.current_task()
    lost = False

    async def renew() -> None:
        nonlocal lost
        while True:
            if not await asyncio.to_thread(runs.acquire, NAME, run_id, SECONDS):
                lost = True
                assert body is not None
                body.cancel()
                return
            await asyncio.to_thread(runs.progress, run_id, progress())
            if await asyncio.to_thread(runs.asked_to_stop, run_id):
                assert body is not None
                body.cancel()
                return
            await asyncio.sleep(RENEW_EVERY)

    keeper = asyncio.create_task(renew())
    try:
        yield
        await asyncio.to_thread(runs.progress, run_id, progress())
    except asyncio.CancelledError:
        if not lost:
            raise
        taken = f"training run {runs.holder(NAME)} took over while this one stood still"
        raise Conflict(f"{taken}; finished calls are kept, start it again when the other is done") from None
    finally:
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper


def release(runs: Runs, run_id: str) -> None:
    """Give the lease back."""
    runs.release(NAME, run_id)


def _free(runs: Runs) -> None:
    """Give back the lease of a run of this machine whose process is gone."""
    holder = runs.holder(NAME)
    if holder is None:
        return
    try:
        left = runs.run(holder).arguments
    except NotFound:
        return
    if left.get("host") == socket.gethostname() and not _lives(left.get("pid")):
        runs.release(NAME, holder)


def _lives(pid: Any) -> bool:
    if not isinstance(pid, int) or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
