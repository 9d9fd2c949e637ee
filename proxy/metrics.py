"""What the proxy counts for Prometheus. OpenTelemetry's GenAI names for what they cover, `tfgrpo_` for what is ours.

Counted when an exchange is over, so that no client waits for it. With several workers the values lie in files of a
folder that they share (prometheus_client's multiprocess mode), so that each worker answers for all of them. What the
store knows stands in `metrics_of_store`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from proxy.calls import Given
from proxy.metrics_of_store import StoreMetrics
from proxy.telemetry import Sources
from proxy.telemetry_settings import FOLDER_VARIABLE
from proxy.transcript import Transcript
from tfgrpo.types import Exchange

SECONDS: Final = 2.0
"""How often what is no event is looked at: the queue, requests in flight."""

MOST_NAMES: Final = 100
"""Clients choose the names of models and sets: beyond this many, one worker counts the rest under OTHER."""

OTHER: Final = "_other"
BYTES_A_TOKEN: Final = 4
"""How many tokens a block has is the provider's to say; four bytes to one is the usual guess for English."""

_DURATIONS: Final = tuple(0.01 * 2**power for power in range(14))
_TOKENS: Final = tuple(4.0**power for power in range(14))
# The buckets of both are those that OpenTelemetry's GenAI conventions advise.
_ADDED: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_OPERATIONS: Final = {"chat": "chat", "responses": "chat", "messages": "chat", "completions": "text_completion"}
_LIVE_FILE: Final = re.compile(r"gauge_live.*_(\d+)\.db")


def create(sources: Sources, lost: Callable[[], int]) -> Metrics:
    """Make the metrics of one worker."""
    return Metrics(sources, StoreMetrics(sources.store, sources.experiments), lost)


class Metrics:
    """The instruments of one worker. `kept` knows what the store holds, `lost` how many lines of logs were dropped."""

    def __init__(self, sources: Sources, kept: Collector, lost: Callable[[], int]) -> None:
        own = CollectorRegistry()
        common = ["gen_ai_operation_name", "gen_ai_request_model", "gen_ai_provider_name"]
        self._duration = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "From the request's arrival to the end of its answer.",
            [*common, "error_type"],
            buckets=_DURATIONS,
            registry=own,
        )
        self._first = Histogram(
            "gen_ai_server_time_to_first_token_seconds",
            "From the request's arrival to the first byte of its answer.",
            common,
            buckets=_DURATIONS,
            registry=own,
        )
        self._tokens = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of an exchange, as the provider counted them.",
            [*common, "gen_ai_token_type"],
            buckets=_TOKENS,
            registry=own,
        )
        self._exchanges = Counter(
            "tfgrpo_exchanges", "Exchanges by outcome.", ["app", "set", "arm", "outcome"], registry=own
        )
        self._added = Histogram(
            "tfgrpo_added_latency_seconds",
            "From the request's arrival to its sending, which is what the proxy adds.",
            buckets=_ADDED,
            registry=own,
        )
        self._injected = Counter(
            "tfgrpo_injected_tokens", "Tokens added to requests, four bytes taken for one.", ["set"], registry=own
        )
        self._records = Counter("tfgrpo_records", "Records by what became of them.", ["fate"], registry=own)
        self._lost = Counter("tfgrpo_log_lines_dropped", "Lines that standard error did not take.", registry=own)
        self._queue = Gauge(
            "tfgrpo_queue_records", "Records that wait for the store.", registry=own, multiprocess_mode="livesum"
        )
        self._bytes = Gauge(
            "tfgrpo_queue_bytes", "Bytes that wait for the store.", registry=own, multiprocess_mode="livesum"
        )
        self._flying = Gauge(
            "tfgrpo_requests_in_flight", "Requests that run.", registry=own, multiprocess_mode="livesum"
        )
        self._level, self._in_flight, self._lines_lost = sources.level, sources.in_flight, lost
        self._seen: dict[str, int] = {}
        self._names: dict[str, set[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._folder = os.environ.get(FOLDER_VARIABLE)
        self._all = CollectorRegistry() if self._folder else own
        if self._folder:
            MultiProcessCollector(self._all)  # type: ignore[no-untyped-call]
        self._all.register(kept)

    def __call__(self, exchange: Exchange, given: Given, transcript: Transcript) -> None:
        """Count one exchange that is over."""
        operation = _OPERATIONS.get(exchange.dialect or "", OTHER)
        common = (operation, self._bounded("model", exchange.model or ""), exchange.upstream)
        error = "" if exchange.outcome == "complete" else str(exchange.status or exchange.outcome)
        self._duration.labels(*common, error).observe(exchange.ended_at - exchange.started_at)
        if exchange.first_byte_at is not None:
            self._first.labels(*common).observe(exchange.first_byte_at - exchange.started_at)
        for kind, count in (("input", exchange.prompt_tokens), ("output", exchange.completion_tokens)):
            if count is not None:
                self._tokens.labels(*common, kind).observe(count)
        set_name = self._bounded("set", exchange.set or "")
        self._exchanges.labels(exchange.app, set_name, exchange.arm, exchange.outcome).inc()
        if transcript.sending_at is not None:
            self._added.observe(max(0.0, transcript.sending_at - exchange.started_at))
        if given.injected != "none" and given.body is not None:
            added = len(given.body) - transcript.request.size
            self._injected.labels(set_name).inc(max(0, added) / BYTES_A_TOKEN)

    async def start(self) -> None:
        """Start looking at levels."""
        self._task = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def exposition(self) -> bytes:
        """Return what Prometheus reads, of all workers."""
        self._sample()
        return await asyncio.to_thread(self._written)

    def _written(self) -> bytes:
        if self._folder:
            _forget_the_dead(Path(self._folder))
        return generate_latest(self._all)

    async def _look(self) -> None:
        while True:
            self._sample()
            await asyncio.sleep(SECONDS)

    def _sample(self) -> None:
        stats = asdict(self._level())
        self._queue.set(stats.pop("queued"))
        self._bytes.set(stats.pop("queued_bytes"))
        self._flying.set(self._in_flight())
        for fate, count in stats.items():
            if type(count) is int:
                self._advance(self._records.labels(fate), fate, count)
        self._advance(self._lost, "lines lost", self._lines_lost())

    def _advance(self, counter: Counter, what: str, count: int) -> None:
        counter.inc(max(0, count - self._seen.get(what, 0)))
        self._seen[what] = count

    def _bounded(self, kind: str, name: str) -> str:
        known = self._names.setdefault(kind, set())
        if name in known:
            return name
        if len(known) >= MOST_NAMES:
            return OTHER
        known.add(name)
        return name


def _forget_the_dead(folder: Path) -> None:
    """A worker that is gone has nothing in flight and no queue; what it counted still counts."""
    for path in folder.glob("gauge_live*.db"):
        found = _LIVE_FILE.fullmatch(path.name)
        if found is not None and not _lives(int(found[1])):
            mark_process_dead(int(found[1]), str(folder))  # type: ignore[no-untyped-call]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
