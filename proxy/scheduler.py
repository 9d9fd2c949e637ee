"""Trains the sets that have traffic, as often as the configuration says, each in a process of its own.

Of all workers and replicas on one store only the holder of a lease does it. What training is, and that no two runs
meet, is the business of the `tfgrpo train` command: here it is a program that is started, waited for, and ended when
the proxy stops.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import re
import sys
import time
import uuid
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from tfgrpo.errors import StoreError, UsageError
from tfgrpo.store import Store

LEASE = "schedule"
LEASE_SECONDS = 30.0
RENEW_SECONDS = 10.0
END_SECONDS = 10.0
"""How long a training process may take to end before it is killed."""

TAIL_BYTES = 4096
KEY = "training.schedule"

_EVERY = re.compile(r"every\s+(\d{1,6})\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_CRON_FIELDS = 5

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When training is due: every so many seconds, counted from the epoch so that restarts do not shift it, or by a
    cron line in local time. Made by `parse`.
    """

    every: int | None = None
    cron: str | None = None

    def after(self, now: float) -> float:
        """Return the first time after `now` at which training is due."""
        if self.every is not None:
            return float((int(now) // self.every + 1) * self.every)
        local = datetime.fromtimestamp(now, UTC).astimezone()
        following: datetime = _croniter().croniter(self.cron, local).get_next(datetime)
        return following.timestamp()


def parse(text: str) -> Schedule:
    """Read "every 6h" (s, m, h, d) or a cron line of five fields.

    Raises:
        UsageError: It is neither.
    """
    found = _EVERY.fullmatch(text.strip())
    if found is not None and int(found.group(1)) > 0:
        return Schedule(every=int(found.group(1)) * _SECONDS[found.group(2)])
    if found is None and len(text.split()) == _CRON_FIELDS and _croniter().croniter.is_valid(text):
        schedule = Schedule(cron=text.strip())
        try:
            schedule.after(time.time())
        except _croniter().CroniterError as error:
            raise UsageError(f"{KEY}: {text!r} names no day that comes", field=KEY) from error
        return schedule
    raise UsageError(f'{KEY}: {text!r} is neither like "every 6h" nor a cron line like "0 3 * * *"', field=KEY)


def _croniter() -> ModuleType:
    """Return the reader of cron lines, loaded only where one is configured: few are, and it is slow to load."""
    return importlib.import_module("croniter")


class Scheduler:
    """Starts `tfgrpo train` for each set that has traffic when it is due.

    `sets` are those that the configuration names; `program` is what is started.
    """

    def __init__(
        self,
        store: Store,
        schedule: Schedule,
        *,
        sets: Sequence[str] = (),
        config: Path | None = None,
        program: Sequence[str] = (sys.executable, "-m", "tfgrpo"),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._schedule = schedule
        self._sets = tuple(sets)
        self._config = config
        self._program = tuple(program)
        self._clock = clock
        self._holder = uuid.uuid4().hex
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to wait for the next time."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End a running training and give the lease back."""
        self._stopping.set()
        if self._task is None:
            return
        await self._task
        try:
            await asyncio.to_thread(self._store.runs.release, LEASE, self._holder)
        except StoreError as error:
            _log.warning("the lease of the schedule runs out by itself: %s", error)

    async def _run(self) -> None:
        due = self._schedule.after(self._clock())
        while not self._stopping.is_set():
            mine = await self._holds_lease()
            await self._pause(min(RENEW_SECONDS, due - self._clock()))
            if self._clock() >= due:
                if mine:
                    await self._train_all()
                due = self._schedule.after(self._clock())

    async def _pause(self, seconds: float) -> None:
        """Wait, but no longer than until the stop."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _holds_lease(self) -> bool:
        try:
            return await asyncio.to_thread(self._store.runs.acquire, LEASE, self._holder, LEASE_SECONDS)
        except StoreError as error:
            _log.warning("scheduled training waits for the store: %s", error)
            return False

    async def _train_all(self) -> None:
        try:
            names = await asyncio.to_thread(self._with_traffic)
        except StoreError as error:
            _log.error("scheduled training is left out this time: %s", error)
            return
        for name in names:
            if not self._stopping.is_set():
                await self._train(name)

    def _with_traffic(self) -> list[str]:
        names = dict.fromkeys([*self._store.sets.names(), *self._sets])
        return [name for name in names if self._store.traffic.page(set_name=name, limit=1)]

    async def _train(self, name: str) -> None:
        command = [*self._program, "train", "--set", name, "--from", "traffic"]
        command += ["--config", str(self._config)] if self._config is not None else []
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
        except OSError as error:
            _log.error("training of %s could not be started: %s", name, error)
            return
        assert process.stdout is not None
        _log.info("training of %s started (process %d)", name, process.pid)
        last = asyncio.create_task(tail(process.stdout))
        await self._until_ended(process, last)
        said = (await last).decode("utf-8", "replace").strip().splitlines()
        code = await process.wait()
        _log.log(
            logging.INFO if code == 0 else logging.WARNING,
            "training of %s ended with exit status %d: %s",
            name,
            code,
            said[-1] if said else "it said nothing",
        )

    async def _until_ended(self, process: Process, last: asyncio.Task[bytes]) -> None:
        """Wait until the process has closed its output, which it does at its end; end it when the proxy stops."""
        stop = asyncio.create_task(self._stopping.wait())
        while not last.done() and not stop.done():
            await asyncio.wait({last, stop}, timeout=RENEW_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            await self._holds_lease()
        stop.cancel()
        if last.done():
            return
        process.terminate()
        await asyncio.wait({last}, timeout=END_SECONDS)
        if not last.done():
            process.kill()


async def tail(output: asyncio.StreamReader) -> bytes:
    """Read to the end and return the last of it. A progress bar makes no lines, so it is read in pieces."""
    kept = b""
    while piece := await output.read(TAIL_BYTES):
        kept = (kept + piece)[-TAIL_BYTES:]
    return kept
