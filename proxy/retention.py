"""Keeps what live experiments and the sums by the hour count, and takes away what is too old, beside live traffic.

Of all workers and replicas on one store only the holder of a lease does it. First labels are counted and what has come
of age is frozen; only then do labels and metadata go, a small batch at a time with a pause behind each, so that the
recorder never waits for long. What is too old is decided in `tfgrpo.retention`.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from proxy.experiments import Experiments
from proxy.reward_hours import RewardHours
from tfgrpo import retention
from tfgrpo.errors import TfgrpoError
from tfgrpo.retention import RetentionSettings
from tfgrpo.store import Deleted, Store

LEASE: Final = "retention"
LEASE_SECONDS: Final = 60.0
INTERVAL: Final = 10.0
"""How often labels are counted, what has come of age is frozen, and what is too old looked for."""

PAUSE: Final = 0.05
"""Between two batches: longer than one of them holds the store's lock."""

RENEW_EVERY: Final = 100
"""Batches between two renewals of the lease."""

_log = logging.getLogger(__name__)


class Retention:
    """Freezes and deletes, every few seconds."""

    def __init__(
        self,
        store: Store,
        experiments: Experiments,
        ages: RetentionSettings,
        *,
        sums: RewardHours,
        pause: float = PAUSE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._experiments = experiments
        self._sums = sums
        self._ages = ages
        self._pause = pause
        self._clock = clock
        self._holder = uuid.uuid4().hex
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._deleted = Deleted()
        self._failing = False

    @property
    def stats(self) -> dict[str, Any]:
        """What this worker has deleted since it began."""
        return asdict(self._deleted)

    async def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finish the batch that runs, and give the lease back."""
        self._stopping.set()
        if self._task is not None:
            await self._task
        try:
            await asyncio.to_thread(self._store.runs.release, LEASE, self._holder)
        except TfgrpoError as error:
            _log.warning("the lease of retention runs out by itself: %s", error)

    async def look(self) -> None:
        """Do what is to be done now. What fails is logged once, and tried again at the next look."""
        try:
            if await self._holds_lease():
                await self._count()
                await asyncio.to_thread(self._experiments.freeze)
                await self._sweep()
        except TfgrpoError as error:
            if not self._failing:
                _log.warning("no label is counted, nothing is frozen or deleted by its age for now: %s", error)
            self._failing = True
        else:
            self._failing = False

    async def _count(self) -> None:
        more = True
        while more and not self._stopping.is_set():
            more = await asyncio.to_thread(self._sums.count)
            await asyncio.sleep(self._pause)

    async def _sweep(self) -> None:
        if not self._ages.any:
            return
        beyond = await asyncio.to_thread(retention.bounds, self._store, self._ages, self._clock())
        batches = retention.sweep(self._store, beyond)
        before, count = self._deleted, 0
        while not self._stopping.is_set():
            done = await asyncio.to_thread(next, batches, None)
            if done is None:
                break
            self._deleted += done
            count += 1
            if count % RENEW_EVERY == 0 and not await self._holds_lease():
                break
            await asyncio.sleep(self._pause)
        if count:
            _log.info("deleted by their age: %s", _difference(before, self._deleted))

    async def _holds_lease(self) -> bool:
        return await asyncio.to_thread(self._store.runs.acquire, LEASE, self._holder, LEASE_SECONDS)

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self.look()
            try:
                async with asyncio.timeout(INTERVAL):
                    await self._stopping.wait()
            except TimeoutError:
                continue


def _difference(before: Deleted, after: Deleted) -> str:
    earlier = asdict(before)
    return ", ".join(f"{number - earlier[kind]} {kind}" for kind, number in asdict(after).items())
