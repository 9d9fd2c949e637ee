"""The page that a person sees first: what passed through, whether it helps, what runs, what needs a decision.

Its numbers are the store's sums by the hour, so that it takes as long over a million exchanges as over ten. How
candidates stand is a page of its own, which the overview takes in when it is there: the first look after a start reads
all that was counted of them. While the store is away it says so, and shows what this worker knows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from proxy.dashboard import matters, pages, spans
from proxy.dashboard.forms import Form, refused
from proxy.dashboard.matters import Matter
from proxy.dashboard.spans import SPANS, Span
from proxy.dashboard.training import LEASE
from proxy.deployments import Deployments
from proxy.experiments import Experiments
from tfgrpo import experiment
from tfgrpo.errors import StoreError
from tfgrpo.library import Limits
from tfgrpo.store import Store
from tfgrpo.types import Deployment

PATIENCE = 0.15
"""How many seconds a page waits for a look at the candidates; after that it says that it is still counting."""

RUNS = 3
"""How many of the newest runs are looked at."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a deployed library is held against; `chosen`: a trajectory gets a choice of one that is larger."""

    limits: Limits
    chosen: bool


class OverviewPages:
    """The pages `/admin` and `/admin/candidates`. `status` says how this worker is, `mode` who acts on decisions."""

    def __init__(
        self,
        store: Store,
        deployments: Deployments,
        experiments: Experiments,
        *,
        status: Callable[[], Mapping[str, Any]],
        budget: Budget,
        mode: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._deployments = deployments
        self._experiments = experiments
        self._status = status
        self._budget = budget
        self._mode = mode
        self._clock = clock
        self._looking: asyncio.Task[list[dict[str, Any]]] | None = None

    async def overview(self, request: Request) -> Response:
        """Show the overview of the `span` of the query, and the rewards of its `set`."""
        query = Form.query(request)
        span, wanted, now = _span(query), query.text("set"), self._clock()
        status = self._status()
        found = [
            *matters.of_worker(status),
            *matters.of_libraries(self._deployments, self._budget.limits, chosen=self._budget.chosen),
        ]
        known: dict[str, Any] = {}
        values: dict[str, Any] = {"span": span, "begins": span.begins(now), "worker": status}
        try:
            known = await asyncio.to_thread(self._known, span, now, wanted)
        except StoreError as error:
            if not any(one.about == "Store" for one in found):
                found.insert(0, Matter("fault", "Store", f"{error}."))
        else:
            found += known.pop("matters")
        candidates = matters.with_candidates(self._deployments.all())
        return pages.page(
            "overview.html",
            token=request.state.token,
            spans=SPANS.values(),
            known=known,
            matters=found,
            candidates=candidates,
            new=not found and not candidates and bool(known) and known["new"],
            **values,
        )

    async def candidates(self, request: Request) -> Response:
        """Show how each candidate stands against what is live."""
        if self._looking is None or self._looking.done():
            deployments = matters.with_candidates(self._deployments.all())
            self._looking = asyncio.create_task(asyncio.to_thread(self._standings, deployments))
        looking = self._looking
        await asyncio.wait({looking}, timeout=PATIENCE)
        rows = looking.result() if looking.done() else None
        return pages.page("candidates.html", token=request.state.token, rows=rows, mode=self._mode)

    async def stop(self) -> None:
        """Let the look that runs end."""
        if self._looking is not None:
            await asyncio.gather(self._looking, return_exceptions=True)

    def _standings(self, deployments: Sequence[Deployment]) -> list[dict[str, Any]]:
        return [self._standing(one) for one in deployments]

    def _known(self, span: Span, now: float, wanted: str) -> dict[str, Any]:
        """What the store says."""
        since, width = span.since(now), span.width
        each, whole = spans.steps(self._store.hours.facts(since=since, width=width), span.steps)
        names = self._store.hours.rewarded_sets()
        if wanted and wanted not in names and wanted not in self._store.sets.names():
            raise refused("set", f"is {wanted[:80]!r}; there is no such set")
        shown = wanted if wanted or not names else self._first(names)
        arms, rewards = spans.rewards(self._store.hours.rewards(shown, since=since, width=width), span.steps)
        runs, holder = self._store.glances.runs(RUNS), self._store.runs.holder(LEASE)
        return {
            "new": not (whole.requests or runs or names),
            "steps": each,
            "whole": whole,
            "sets": sorted({*names, shown}),
            "set": shown,
            "arms": arms,
            "rewards": rewards,
            "counted": self._store.hours.counted()[0],
            "runs": runs,
            "holder": holder,
            "matters": [*matters.of_runs(runs, holder), *matters.of_versions(self._store.glances.newest())],
        }

    def _first(self, names: Sequence[str]) -> str:
        """The set whose rewards are shown where none is asked for: one that is being tried, else one deployed."""
        tried = [one.set for one in matters.with_candidates(self._deployments.all())]
        deployed = [one.set for one in sorted(self._deployments.all(), key=lambda one: -one.created_at)]
        return next((name for name in (*tried, *deployed) if name in names), names[-1])

    def _standing(self, deployment: Deployment) -> dict[str, Any]:
        books = self._experiments.look(deployment.set)
        if books is None or books.deployment.candidate is None:
            return {"deployment": deployment, "decision": None}
        levels = self._experiments.levels(books.deployment)
        decision = experiment.decide(books.account, levels)
        tallies = [(arm, tally) for arm, tally in books.account.tallies.items() if tally.n]
        return {"deployment": books.deployment, "decision": decision, "tallies": tallies}


def _span(query: Form) -> Span:
    name = query.text("span") or "week"
    if name not in SPANS:
        raise refused("span", f"is {name[:40]!r}; it takes {', '.join(SPANS)}")
    return SPANS[name]
