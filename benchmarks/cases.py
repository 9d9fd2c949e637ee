"""The cases: what is sent to every target, and which numbers are read off.

CPU is that of the target's whole process family over the loaded interval and a moment after it, so that what it writes
behind an answer counts too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.bodies import Requests
from benchmarks.load import Loaded, closed, streams
from benchmarks.processes import cpu_seconds
from benchmarks.results import Values
from benchmarks.targets import KEY, Target
from benchmarks.upstream import Plan, Upstream

WARM_SECONDS: Final = 0.3
AFTER_SECONDS: Final = 0.25
"""How long a target may work on after the last answer; five times what this proxy's writer gathers for."""

STREAM_SIZE: Final = 1024


@dataclass(frozen=True, slots=True)
class Bodies:
    """Requests of `size` bytes over `connections`, one after the other on each, for `seconds`."""

    name: str
    size: int
    connections: int
    seconds: float

    @property
    def what(self) -> str:
        """The case in words."""
        wires = "one connection" if self.connections == 1 else f"{self.connections} connections"
        return f"requests of {self.size >> 10} KB, answers of 1 KB, {wires}"

    def shortened(self) -> Bodies:
        """The same in a part of the time."""
        return replace(self, seconds=self.seconds / 2)

    async def measure(self, target: Target, upstream: Upstream) -> Values:
        """Load the target and return requests/s, CPU a request and latencies."""
        upstream.plan = None
        requests = Requests(self.size, key=KEY, headers=target.headers)
        await closed(target.port, requests, WARM_SECONDS, self.connections)
        before = _cpu(target)
        loaded = await closed(target.port, requests, self.seconds, self.connections)
        cpu = await _cpu_after(target) - before
        taken = [1000 * (seen.ended - seen.sent) for seen in loaded.seen]
        return {
            "rate": len(taken) / loaded.seconds,
            "cpu": 1000 * cpu / len(taken),
            "p50": quantile(taken, 0.5),
            "p99": quantile(taken, 0.99),
            "busy": loaded.busy,
        }


@dataclass(frozen=True, slots=True)
class Streams:
    """`number` streams as `plan` says, begun over `over` seconds."""

    name: str
    number: int
    plan: Plan
    over: float

    @property
    def what(self) -> str:
        """The case in words."""
        pace = f"one every {1000 * self.plan.pace:g} ms" if self.plan.pace else "as fast as they are taken"
        return f"{self.number:,} streams of {self.plan.chunks} chunks, {pace}, begun over {self.over:g} s"

    def shortened(self) -> Streams:
        """The same in a part of the time."""
        return replace(self, plan=replace(self.plan, chunks=self.plan.chunks // 4))

    async def measure(self, target: Target, upstream: Upstream) -> Values:
        """Run the streams and return chunks/s, CPU a chunk in microseconds, times to the first chunk."""
        upstream.plan = self.plan
        requests = Requests(STREAM_SIZE, key=KEY, headers=target.headers, stream=True)
        before = _cpu(target)
        loaded = await streams(target.port, requests, self.number, over=self.over)
        cpu = await _cpu_after(target) - before
        chunks = sum(seen.chunks for seen in loaded.seen)
        first = [1000 * (seen.first - seen.sent) for seen in loaded.seen if seen.first]
        return {
            "rate": chunks / loaded.seconds,
            "cpu": 1e6 * cpu / max(1, chunks),
            "p50": quantile(first, 0.5),
            "p99": quantile(first, 0.99),
            "complete": self._complete(loaded),
            "busy": loaded.busy,
        }

    def _complete(self, loaded: Loaded) -> float:
        chunks = self.plan.chunks
        complete = [seen.status == 200 and seen.whole and seen.chunks == chunks for seen in loaded.seen]  # noqa: PLR2004 - OK
        return sum(complete) / len(complete)


Case = Bodies | Streams

CASES: Final[tuple[Case, ...]] = (
    Bodies("1KB", 1 << 10, 16, 1.0),
    Bodies("16KB", 16 << 10, 16, 1.0),
    Bodies("256KB", 256 << 10, 16, 1.0),
    Bodies("latency", 1 << 10, 1, 1.0),
    Streams("paced", 100, Plan(chunks=200, pace=0.01), over=0.5),
    Streams("unpaced", 100, Plan(chunks=200, pace=0.0), over=0.0),
    Streams("1000", 1000, Plan(chunks=30, pace=0.1), over=1.0),
)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed; NaN for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def _cpu(target: Target) -> float:
    return cpu_seconds(target.pid) if target.pid is not None else 0.0


async def _cpu_after(target: Target) -> float:
    await asyncio.sleep(AFTER_SECONDS)
    return _cpu(target)
