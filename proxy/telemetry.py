"""What the proxy tells of itself, as the settings say. What is off is not even imported, and costs nothing.

It knows who is to be told of exchanges, and when they start and stop; not what they tell.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from proxy.access_log import AccessLog
from proxy.bookkeeping import Observer
from proxy.calls import Given
from proxy.experiments import Experiments
from proxy.headers import RawHeaders
from proxy.recording import Stats
from proxy.standard_error import Lines, dropped_from_log
from proxy.telemetry_settings import TelemetrySettings
from proxy.transcript import Trace, Transcript
from tfgrpo.store import Store
from tfgrpo.types import Exchange, Label

Lost: TypeAlias = Callable[[], Mapping[str, int]]
"""Says what telemetry was dropped, by kind."""


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


class Tracer(Protocol):
    """`proxy.traces`, where it is on."""

    def __call__(self, exchange: Exchange, given: Given, transcript: Transcript) -> None:
        """End the spans of one exchange that is over."""

    def begin(self, headers: RawHeaders) -> Trace:
        """Begin to trace a request."""

    def label(self, label: Label) -> None:
        """Have a new label told as an event."""

    def start(self) -> None:
        """Start what runs beside requests."""

    def stop(self) -> None:
        """Send what waits, for a bounded time. Blocks."""

    def lost(self) -> Mapping[str, int]:
        """How many spans and events were not taken."""


class Telemetry:
    """The telemetry of one worker. `meter` is there where metrics are on, `tracer` where traces are."""

    def __init__(self, on: TelemetrySettings, sources: Sources) -> None:
        self._lines = Lines()
        self.tracer: Tracer | None = None
        if on.otlp is not None:
            self.tracer = importlib.import_module("proxy.traces").create(on.otlp, sources.store)
        self.meter: Meter | None = None
        if on.metrics:
            self.meter = importlib.import_module("proxy.metrics").create(sources, self.lost)
        log = AccessLog(self._lines) if on.access_log else None
        self.observers: tuple[Observer, ...] = tuple(one for one in (self.meter, log, self.tracer) if one is not None)

    def dropped_lines(self) -> int:
        """How many lines of both logs standard error did not take."""
        return self._lines.dropped + dropped_from_log()

    def lost(self) -> Mapping[str, int]:
        """What telemetry was not taken by whoever should have."""
        lines = {"log_line": self.dropped_lines()}
        return lines if self.tracer is None else {**lines, **self.tracer.lost()}

    async def start(self) -> None:
        """Start what runs beside requests."""
        if self.tracer is not None:
            self.tracer.start()
        if self.meter is not None:
            await self.meter.start()

    async def stop(self) -> None:
        """Stop it, once the last exchange was told of."""
        if self.meter is not None:
            await self.meter.stop()
        if self.tracer is not None:
            await asyncio.to_thread(self.tracer.stop)
        await asyncio.to_thread(self._lines.flush)
