"""Whether this worker stands out of the way: requests are relayed, nothing is injected and nothing recorded.

The configuration may say so for good, or an administrator for now, for every worker on the store. Each asks the store
several times a second; while that does not answer, what was last known stays in force. It relays nothing itself.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from tfgrpo.errors import StoreError
from tfgrpo.store import Store

INTERVAL = 0.25

_log = logging.getLogger(__name__)


class Bypass:
    """The switch, as this worker knows it. `configured`: it is on whatever the store says.

    `peers`: other workers follow the same store.
    """

    def __init__(
        self, store: Store, *, configured: bool = False, peers: bool = False, interval: float = INTERVAL
    ) -> None:
        self.configured = configured
        self.on = configured
        self._store = store
        self._peers = peers
        self._interval = interval
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bypass")
        self._poller: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Ask once, then keep asking."""
        await self.refresh()
        self._poller = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """Ask no more. What is known stays in force."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def refresh(self) -> None:
        """Take over what the store says now."""
        try:
            newest = await asyncio.get_running_loop().run_in_executor(self._thread, self._store.bypass.history, 1)
        except StoreError:
            # That the store is away is told by whoever keeps the deployments.
            return
        on = self.configured or bool(newest and newest[0].bypass)
        if on != self.on:
            reason = newest[0].reason if newest else ""
            _log.warning("bypass is switched %s: %s", "on" if on else "off", reason or "no reason given")
        self.on = on

    async def reach_all(self) -> None:
        """Ask now, and return when the other workers have had the time to do so as well."""
        await self.refresh()
        if self._peers:
            # Twice, as for deployments: one interval of waiting, and a part of another for reading.
            await asyncio.sleep(2 * self._interval)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self.refresh()
