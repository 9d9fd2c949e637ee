"""`make soak`: whether one worker stays as it is over 100,000 requests and 2,000 streams whose client left.

Then the store is locked, twice, while the load goes on: the recorder's queue must stay within its bytes, every client
must be served, all that waited must be written when the store is back, and the memory that it took must be given back.
Fails (exit status 1) when a bound is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import linear_regression
from typing import Any, Final

import uvloop

from benchmarks.bodies import Requests
from benchmarks.compare import ready
from benchmarks.load import LoadError, counted, line
from benchmarks.processes import Cores, memory, open_files, threads
from benchmarks.targets import KEY, Place, Target, ours
from benchmarks.upstream import Plan, Upstream

REQUESTS: Final = 100_000
ABORTED: Final = 2_000
BATCHES: Final = 20
CONNECTIONS: Final = 16

WARM: Final = 0.6
"""The share of the run after which memory must be level: the cache of links holds 50,000 and is full by then."""

BYTES_A_REQUEST: Final = 250.0
"""How fast memory may still grow then. What leaks one record of a request grows ten times as fast."""

MIB: Final = 1 << 20
QUEUE_BYTES: Final = 64 * MIB
"""The recorder's bound, and this program's: the default."""

SLACK_MIB: Final = 24.0
"""What may come on top: objects weigh more than the bytes they hold, and freed memory is given back in pieces."""

LOCKED_REQUESTS: Final = 20_000
"""More than the queue holds."""

STREAM: Final = Plan(chunks=400, pace=0.005)
LONGEST_STAY: Final = 0.12
"""Seconds after which the last client has left its stream; the first leave before anything came."""

SETTLED_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A worker at rest. `memory` in MiB."""

    requests: int
    aborted: int
    memory: float
    files: int
    threads: int


@dataclass(frozen=True, slots=True)
class Check:
    """One bound and what was seen."""

    what: str
    seen: float
    most: float

    @property
    def holds(self) -> bool:
        """Whether the bound was kept."""
        return self.seen <= self.most


def say(text: str) -> None:
    """Print a line of the result."""
    print(text, flush=True)  # noqa: T201 - a program's output


class Soak:
    """One worker under load, and what was seen of it."""

    def __init__(self, target: Target, upstream: Upstream, store: Path) -> None:
        assert target.pid is not None
        self._pid, self._port = target.pid, target.port
        self._upstream = upstream
        self._store = store
        self._requests = Requests(1024, key=KEY)
        self._streams = Requests(1024, key=KEY, stream=True)

    async def flat(self, requests: int, aborted: int) -> list[Check]:
        """Load the worker in batches and say whether it stayed as it was."""
        say(f"{'requests':>9} {'aborted':>8} {'memory MiB':>11} {'files':>6} {'threads':>8} {'seconds':>8}")
        samples = []
        started = time.monotonic()
        for number in range(1, BATCHES + 1):
            await self._load(requests // BATCHES)
            await self._abort(aborted // BATCHES)
            await self._settled()
            sample = self._sample(number * (requests // BATCHES), number * (aborted // BATCHES))
            samples.append(sample)
            say(
                f"{sample.requests:9,} {sample.aborted:8,} {sample.memory:11.1f} {sample.files:6} {sample.threads:8} "
                f"{time.monotonic() - started:8.1f}"
            )
        status = await self._status()
        return [
            *_levels(samples),
            Check("faults", status["faults"], 0),
            Check("drops", status["recorder"]["dropped"], 0),
        ]

    async def locked(self, requests: int) -> list[Check]:
        """Take the store away twice while the load goes on, and say whether the worker stayed within bounds."""
        before = memory(self._pid)
        most, queued, dropped = await self._without_store(requests)
        after = memory(self._pid)
        again, _, _ = await self._without_store(requests)
        say(f"store locked: {requests:,} requests served, {dropped:,} rows dropped, {queued:,} bytes queued at most")
        say(
            f"memory: {before:.0f} MiB before, {most:.0f} at most, {after:.0f} after; locked again, {again:.0f} at most"
        )
        return [
            Check("queue, bytes", queued, QUEUE_BYTES),
            Check(
                "memory beyond the queue while the store is locked, MiB", most - before - QUEUE_BYTES / MIB, SLACK_MIB
            ),
            Check("memory kept when the store is back, MiB", after - before, SLACK_MIB),
            Check("memory that a second lock adds, MiB", again - most, SLACK_MIB),
            Check("locks that did not fill the queue", 0 if dropped else 1, 0),
        ]

    async def _without_store(self, requests: int) -> tuple[float, int, int]:
        """Return the most memory, the most bytes queued and the rows dropped; at the end all that waited is written."""
        most, queued = 0.0, 0
        with closing(sqlite3.connect(self._store, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            for _ in range(BATCHES):
                await self._load(requests // BATCHES)
                recorder = (await self._status())["recorder"]
                most, queued = max(most, memory(self._pid)), max(queued, recorder["queued_bytes"])
            holder.execute("ROLLBACK")
        await self._settled()
        return max(most, memory(self._pid)), queued, recorder["dropped"]

    async def _load(self, number: int) -> None:
        self._upstream.plan = None
        await counted(self._port, self._requests, number, CONNECTIONS)

    async def _abort(self, number: int) -> None:
        self._upstream.plan = STREAM
        asked = self._streams.conversations()

        async def one(index: int) -> None:
            async with line(self._port) as connection:
                answer = asyncio.create_task(connection.exchange(next(asked)))
                await asyncio.sleep(LONGEST_STAY * index / number)
                connection.close()
                await answer

        await asyncio.gather(*[one(index) for index in range(number)])

    async def _settled(self) -> None:
        """Wait until nothing is in flight and everything is written.

        Raises:
            LoadError: It is not within a minute.
        """
        until = time.monotonic() + SETTLED_SECONDS
        while time.monotonic() < until:
            status = await self._status()
            if not status["in_flight"] and not status["recorder"]["queued_bytes"]:
                return
            await asyncio.sleep(0.05)
        raise LoadError(f"the worker did not come to rest within {SETTLED_SECONDS:g} s: {status}")

    async def _status(self) -> dict[str, Any]:
        return await asyncio.to_thread(_status, self._port)

    def _sample(self, requests: int, aborted: int) -> Sample:
        return Sample(requests, aborted, memory(self._pid), open_files(self._pid), threads(self._pid))


def _levels(samples: Sequence[Sample]) -> list[Check]:
    """Return what must not grow any more once the worker is warm."""
    warm = int(len(samples) * WARM)
    before, level = samples[:warm], samples[warm:]
    slope = linear_regression([one.requests for one in level], [one.memory * MIB for one in level]).slope
    return [
        Check("memory growth, bytes a request", slope, BYTES_A_REQUEST),
        Check("open files", level[-1].files, max(one.files for one in before)),
        Check("threads", level[-1].threads, max(one.threads for one in before)),
    ]


def _status(port: int) -> dict[str, Any]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/status")
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        return found


async def soak(options: argparse.Namespace) -> int:
    """Run both parts and return the exit status."""
    cores = Cores.of_this_machine()
    os.sched_setaffinity(0, {cores.load})
    upstream = Upstream()
    with tempfile.TemporaryDirectory(prefix="tfgrpo-soak-") as folder:
        async with upstream.listening():
            place = Place(Path(folder), cores, upstream.port)
            with ours(place, "soak", recorder={"queue_bytes": QUEUE_BYTES}, outage={"spill_bytes": 0}) as target:
                await ready(target, Requests(1024, key=KEY))
                run = Soak(target, upstream, place.folder / "soak.db")
                checks = await run.flat(options.requests, options.aborted)
                checks += await run.locked(options.locked)
    for check in checks:
        say(f"{'held' if check.holds else 'BROKEN':7} {check.what}: {check.seen:,.1f}, at most {check.most:,.1f}")
    return 0 if all(check.holds for check in checks) else 1


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="make soak", description="Whether one worker stays level under load.")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--aborted", type=int, default=ABORTED)
    parser.add_argument("--locked", type=int, default=LOCKED_REQUESTS, help="requests while the store is locked")
    try:
        return uvloop.run(soak(parser.parse_args()))
    except LoadError as error:
        say(f"soak: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
