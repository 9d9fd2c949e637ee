"""The control plane is loaded when it is first asked for, and nobody else waits for that."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

from proxy.client import Receive, Scope, Send
from proxy.control import Control
from tests.upstreams import PATIENCE

UNNEEDED = {
    "proxy.control_plane",
    "proxy.admin",
    "proxy.dashboard",
    "jinja2",
    "starlette.applications",
    "croniter",
    "litellm",
    "psycopg",
    "sqlalchemy.dialects.postgresql",
    "prometheus_client",
    "opentelemetry",
}
"""What serving does not need where nothing asks for it."""


class _Plane:
    def __init__(self) -> None:
        self.served = 0
        self.stopped = False

    async def __call__(self, _: Scope, __: Receive, ___: Send) -> None:
        self.served += 1

    async def stop(self) -> None:
        self.stopped = True


class _Loading:
    """Loads a control plane, once the test lets it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = threading.Event()
        self.made: list[_Plane] = []
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> _Plane:
        self._loop.call_soon_threadsafe(self.begun.set)
        assert self.go_on.wait(PATIENCE)
        self.made.append(_Plane())
        return self.made[-1]


async def _ask(control: Control) -> None:
    async def receive() -> Any:
        raise AssertionError

    async def send(_: Any) -> None:
        raise AssertionError

    await control({"type": "http"}, receive, send)


def test_a_start_loads_nothing_that_only_administrators_or_other_settings_need() -> None:
    told = "import sys, proxy.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split()  # noqa: S603
    assert "proxy.relay" in loaded
    assert not UNNEEDED & set(loaded)


async def test_the_loop_is_free_while_the_control_plane_loads_and_it_loads_once() -> None:
    load = _Loading()
    control = Control(load)
    first = asyncio.create_task(_ask(control))
    async with asyncio.timeout(PATIENCE):
        # What runs here is what live requests run in: it goes on while `load` stands still.
        await load.begun.wait()
        second = asyncio.create_task(_ask(control))
        load.go_on.set()
        await asyncio.gather(first, second)
    assert [plane.served for plane in load.made] == [2]


async def test_stopping_stops_what_was_loaded_and_loads_nothing_for_it() -> None:
    load = _Loading()
    load.go_on.set()
    never_asked = Control(load)
    await never_asked.stop()
    assert load.made == []
    asked = Control(load)
    await _ask(asked)
    await asked.stop()
    assert [plane.stopped for plane in load.made] == [True]
