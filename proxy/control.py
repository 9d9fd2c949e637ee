"""The seam to the control plane: what it is given of this worker, and when it is loaded.

Serving needs neither the admin API nor the pages, nor what they are made with, which would take a tenth of a start and
of the memory. They are loaded when an administrator first asks, in a thread: no live request waits for that.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from proxy.auth import Keys
from proxy.bypass import Bypass
from proxy.client import Receive, Scope, Send
from proxy.deployments import Deployments
from proxy.experiments import Experiments
from proxy.label_writer import LabelWriter
from proxy.settings import Settings
from tfgrpo.store import Store


@dataclass(frozen=True, slots=True)
class Worker:
    """What administrators see and change: the parts of this worker. `status` says how it is."""

    settings: Settings
    config: Path | None
    secret: bytes
    store: Store
    deployments: Deployments
    experiments: Experiments
    labels: LabelWriter
    bypass: Bypass
    keys: Keys
    status: Callable[[], Mapping[str, Any]]


class ControlPlane(Protocol):
    """`proxy.control_plane`, once it is loaded."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send, /) -> None:
        """Serve one request below `/admin`."""

    async def stop(self) -> None:
        """End what administrators started."""


class Control:
    """The ASGI app of `/admin` and every path below it. `load` makes the control plane, and may take its time."""

    def __init__(self, load: Callable[[], ControlPlane]) -> None:
        self._load = load
        self._loaded: ControlPlane | None = None
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; the first one loads what serves it."""
        async with self._turn:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._load)
        await self._loaded(scope, receive, send)

    async def stop(self) -> None:
        """End what administrators started."""
        async with self._turn:
            if self._loaded is not None:
                await self._loaded.stop()


def control_of(worker: Worker) -> Control:
    """Return the control plane of a worker, not loaded yet."""
    return Control(lambda: _loaded(worker))


def _loaded(worker: Worker) -> ControlPlane:
    made: ControlPlane = importlib.import_module("proxy.control_plane").create(worker)
    return made
