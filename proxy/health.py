"""Whether the proxy lives and what it is doing, as JSON for probes and people. It shows no secret and no content."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from proxy.bookkeeping import Bookkeeper
from proxy.bypass import Bypass
from proxy.client import Send
from proxy.deployments import Deployments
from proxy.linking import Linker
from proxy.recording import Recorder
from proxy.relay import Relay
from proxy.retention import Retention
from proxy.routing import Router
from proxy.spill import Spill

PATHS: Final = frozenset({"/health/liveliness", "/health/liveness", "/health/readiness", "/status"})


class Health:
    """The answers of one worker."""

    def __init__(
        self,
        router: Router,
        *,
        relay: Relay,
        recorder: Recorder,
        linker: Linker,
        books: Bookkeeper,
        spill: Spill,
        deployments: Deployments,
        retention: Retention,
        bypass: Bypass,
        lines_lost: Callable[[], int],
    ) -> None:
        self._retention = retention
        self._bypass = bypass
        self._lines_lost = lines_lost
        self._spill = spill
        self._deployments = deployments
        self._relay = relay
        self._recorder = recorder
        self._linker = linker
        self._books = books
        self._upstreams = [one.name for one in router.upstreams]
        self._started_at = time.time()

    async def __call__(self, path: str, send: Send) -> None:
        """Answer one of PATHS."""
        body = json.dumps(self._said(path)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _said(self, path: str) -> dict[str, Any]:
        if path.startswith("/health/live"):
            return {"status": "alive"}
        return {"status": self._ready} if path == "/health/readiness" else self.status()

    @property
    def _ready(self) -> str:
        away = self._recorder.stats.failing or self._spill.away or not self._deployments.answering
        return "degraded" if away else "ready"

    def status(self) -> dict[str, Any]:
        """Return how this worker is, and what it has done since it began."""
        return {
            "status": self._ready,
            "worker": os.getpid(),
            "up_seconds": round(time.time() - self._started_at, 1),
            "bypass": self._bypass.on,
            "in_flight": self._relay.in_flight,
            "faults": self._books.faults,
            "log_lines_dropped": self._lines_lost(),
            "upstreams": self._upstreams,
            "recorder": asdict(self._recorder.stats),
            "spill": asdict(self._spill.stats),
            "entries_left_out": self._deployments.left_out,
            "deleted": self._retention.stats,
            "linking": {**asdict(self._linker.stats), "unknown": self._linker.unknown},
        }
