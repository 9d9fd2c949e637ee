"""How many candidate trajectories may await their label, where candidates are promoted by themselves.

The count comes from the store several times a second; between two of them a worker adds those it draws itself. While
the bound is reached, new trajectories get live and are not drawn. A trajectory awaits its label until it has one, for
an hour at most: many are never labelled, and must not hold the bound.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable

from proxy.deployments import Deployments
from tfgrpo.errors import StoreError
from tfgrpo.store import Store
from tfgrpo.types import Deployment

INTERVAL = 0.25

_log = logging.getLogger(__name__)


class Outstanding:
    """The candidate trajectories that await a label, by set. `most` None: there is no bound.

    Without an answer of the store the last count stands.
    """

    def __init__(
        self,
        store: Store,
        deployments: Deployments,
        *,
        most: int | None,
        patience: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._deployments = deployments
        self._most = most
        self._patience = patience
        self._clock = clock
        self._waiting: dict[str, int] = {}
        self._drawn: Counter[str] = Counter()
        self._poller: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Keep counting, where there is a bound."""
        if self._most is not None:
            self._poller = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """Count no more."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    def full(self, deployment: Deployment) -> bool:
        """Say whether no further candidate may be drawn now."""
        if self._most is None or not _draws(deployment):
            return False
        name = deployment.set
        return self._waiting.get(name, 0) + self._drawn[name] >= self._most

    def drew(self, set_name: str) -> None:
        """Count a candidate that this worker drew."""
        if self._most is not None:
            self._drawn[set_name] += 1

    async def count(self) -> None:
        """Take the counts from the store."""
        drawn = Counter(self._drawn)
        for deployment in self._deployments.all():
            if _draws(deployment):
                try:
                    found = await asyncio.to_thread(self._awaiting, deployment)
                except StoreError as error:
                    _log.warning("the bound on waiting candidates stands at its last count: %s", error)
                    return
                # What was drawn since the last count may have landed or not: it is counted once more until the next.
                self._waiting[deployment.set] = found + drawn[deployment.set]
                self._drawn[deployment.set] -= drawn[deployment.set]

    def _awaiting(self, deployment: Deployment) -> int:
        since, most = self._clock() - self._patience, self._most or 0
        return self._store.experiments.awaiting(deployment.set, (deployment.revision,), since=since, most=most)

    async def _poll(self) -> None:
        while True:
            await self.count()
            await asyncio.sleep(INTERVAL)


def _draws(deployment: Deployment) -> bool:
    return deployment.candidate is not None and deployment.shares.get("candidate", 0) > 0
