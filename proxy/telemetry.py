"""What the proxy tells of itself, as the settings say. What is off is not even imported, and costs nothing.

It knows who is to be told of exchanges, and when they start and stop; not what they tell.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from proxy.access_log import AccessLog
from proxy.bookkeeping import Observer
from proxy.calls import Given
from proxy.experiments import Experiments
from proxy.recording import Stats
from proxy.standard_error import Lines, dropped_from_log
from proxy.telemetry_settings import TelemetrySettings
from proxy.transcript import Transcript
from tfgrpo.store import Store
from tfgrpo.types import Exchange


@dataclass(frozen=True, slots=True)
class Sources:
    """Where what is no event comes from: `level` says how the recorder stands, `in_flight` how many requests run."""

    level: Callable[[], Stats]
    in_flight: Callable[[], int]
    store: Store
    experiments: Experiments


class Meter(Protocol):
    """`proxy.metrics`, where it is on."""

    def __call__(self, exchange: Exchange, given: Given, transcript: Transcript) -> None:
        """Count one exchange that is over."""

    async def start(self) -> None:
        """Start looking at levels."""

    async def stop(self) -> None:
        """Stop looking."""

    async def exposition(self) -> bytes:
        """Return what Prometheus reads."""


class Telemetry:
    """The telemetry of one worker. `meter` is there where metrics are on."""

    def __init__(self, on: TelemetrySettings, sources: Sources) -> None:
        self._lines = Lines()
        self.meter: Meter | None = None
        if on.metrics:
            self.meter = importlib.import_module("proxy.metrics").create(sources, self.dropped_lines)
        log = AccessLog(self._lines) if on.access_log else None
        self.observers: tuple[Observer, ...] = tuple(one for one in (self.meter, log) if one is not None)

    def dropped_lines(self) -> int:
        """How many lines of both logs standard error did not take."""
        return self._lines.dropped + dropped_from_log()

    async def start(self) -> None:
        """Start what runs beside requests."""
        if self.meter is not None:
            await self.meter.start()

    async def stop(self) -> None:
        """Stop it, once the last exchange was told of."""
        if self.meter is not None:
            await self.meter.stop()
        await asyncio.to_thread(self._lines.flush)
