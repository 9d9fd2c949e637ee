"""Does with candidates what their experiments decide, where the configuration leaves it to the proxy.

Of all workers and replicas on one store only the holder of a lease does it. One candidate at a time: the newest
version that a held-out comparison found to help is made the candidate, at a fixed share, and is promoted, rolled back
or left to run. Each step is an entry of the set's history with its reason. What is decided is not its business.
"""

from __future__ import annotations

import asyncio
import logging
import uuid

from proxy.deployments import Deployments
from proxy.experiments import Experiments
from tfgrpo import experiment
from tfgrpo.errors import Conflict, StoreError, TfgrpoError
from tfgrpo.library import Limits
from tfgrpo.store import Store
from tfgrpo.types import Deployment

LEASE = "promotion"
LEASE_SECONDS = 60.0
INTERVAL = 10.0
ACTOR = "promotion"

_log = logging.getLogger(__name__)


class Promotion:
    """Promotes and rolls back candidates, and starts them with the share `share`."""

    def __init__(
        self,
        store: Store,
        deployments: Deployments,
        experiments: Experiments,
        *,
        share: float,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._deployments = deployments
        self._experiments = experiments
        self._share = share
        self._limits = limits
        self._holder = uuid.uuid4().hex
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look, every few seconds."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finish the look that runs, and give the lease back."""
        self._stopping.set()
        if self._task is None:
            return
        await self._task
        try:
            await asyncio.to_thread(self._store.runs.release, LEASE, self._holder)
        except StoreError as error:
            _log.warning("the lease of promotion runs out by itself: %s", error)

    async def look(self) -> None:
        """Do for every set what is to be done now."""
        try:
            if not await asyncio.to_thread(self._store.runs.acquire, LEASE, self._holder, LEASE_SECONDS):
                return
            deployments = await asyncio.to_thread(self._store.sets.deployments)
        except StoreError as error:
            _log.warning("promotion waits for the store: %s", error)
            return
        for deployment in deployments:
            await self._look_at(deployment)

    async def _look_at(self, deployment: Deployment) -> None:
        try:
            made = await asyncio.to_thread(self._act, deployment)
        except Conflict as error:
            _log.info("%s is left as it is: %s", deployment.set, error)
            # Someone deployed in the meantime: the next look sees what.
            return
        except TfgrpoError as error:
            _log.warning("the candidate of %s is left as it is: %s", deployment.set, error)
            return
        if made is not None:
            _log.warning("%s, revision %d: %s", made.set, made.revision, made.reason)
            await self._deployments.reach_all()

    def _act(self, deployment: Deployment) -> Deployment | None:
        if deployment.candidate is None:
            return self._begin(deployment)
        books = self._experiments.look(deployment.set, deployment.revision)
        if books is None:
            return None
        decision = experiment.decide(books.account, self._experiments.levels(deployment))
        reason, revision = f"version {deployment.candidate} is {decision.reason}", deployment.revision
        if decision.action == "promote":
            return self._store.sets.deploy(
                deployment.set,
                live=deployment.candidate,
                shares=_control(deployment),
                reason=reason,
                actor=ACTOR,
                if_revision=revision,
                limits=self._limits,
            )
        if decision.action == "roll back":
            return self._store.sets.drop_candidate(deployment.set, reason=reason, actor=ACTOR, if_revision=revision)
        return None

    def _begin(self, deployment: Deployment) -> Deployment | None:
        """Make the newest version the candidate, if it helps by a held-out comparison and never had the chance."""
        newest = self._store.sets.latest(deployment.set)
        if newest is None or newest.status != "helps" or newest.version <= (deployment.live or 0):
            return None
        if self._store.reviews.refuses(newest) or self._store.withdrawals.refuses(newest):
            return None
        history = self._store.sets.history(deployment.set)
        if any(newest.version in (one.live, one.candidate) for one in history):
            return None
        return self._store.sets.deploy(
            deployment.set,
            live=deployment.live,
            candidate=newest.version,
            shares={"candidate": min(self._share, 1 - sum(_control(deployment).values()))} | _control(deployment),
            reason=f"version {newest.version} helps by its held-out comparison: it is tried on live traffic",
            actor=ACTOR,
            if_revision=deployment.revision,
            limits=self._limits,
        )

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self.look()
            try:
                async with asyncio.timeout(INTERVAL):
                    await self._stopping.wait()
            except TimeoutError:
                continue


def _control(deployment: Deployment) -> dict[str, float]:
    return {arm: share for arm, share in deployment.shares.items() if arm == "control"}
