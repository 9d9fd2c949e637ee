"""The pages of training: what a run would cost, start it, watch it, stop it, read what came of it.

A run is a process of its own (`trainings`). What is shown of it is what it wrote into the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from proxy.dashboard import pages
from proxy.dashboard.forms import Form
from proxy.dashboard.wishes import SOURCES, Wishes
from proxy.trainings import Datasets, Trainings
from tfgrpo import report
from tfgrpo.errors import TfgrpoError
from tfgrpo.report import words
from tfgrpo.report.record import Record
from tfgrpo.store import Run, Store

RUNS: Final = "/admin/training"
LEASE: Final = "training"
"""The lease that a run holds while it lives (`tfgrpo.commands.lease`)."""

SHOWN: Final = 100
"""Runs in the list."""

LOOK_SECONDS: Final = 1.0
LOOKS: Final = 10
"""An event stream ends after so many looks and the browser asks again: it must not hold up the proxy's stop."""


class TrainingPages:
    """The pages under `/admin/training`. `grader` names the one that is configured."""

    def __init__(self, store: Store, trainings: Trainings, datasets: Datasets, grader: str | None) -> None:
        self._store = store
        self._trainings = trainings
        self._wishes = Wishes(datasets)
        self._grader = grader

    async def all(self, request: Request) -> Response:
        """Show the runs, the newest first."""

        def work() -> dict[str, Any]:
            return {"runs": self._store.glances.runs(SHOWN), "holder": self._store.runs.holder(LEASE)}

        return pages.page("runs.html", token=request.state.token, **await asyncio.to_thread(work))

    async def ask(self, request: Request) -> Response:
        """Show the form that asks for a run; `again` fills it in like an earlier one."""
        query = Form.query(request)
        again, named = query.text("again"), query.text("set")

        def work() -> dict[str, Any]:
            filled = self._wishes.like(self._store.runs.run(again)) if again else {"set": named}
            return {"filled": filled, "sets": self._store.sets.names()}

        found = await asyncio.to_thread(work)
        return self._form(request, **found)

    async def estimate(self, request: Request, form: Form) -> Response:
        """Say what a run would cost, and ask whether to start it; where it cannot start, say why in the form."""
        wish = await asyncio.to_thread(self._wishes.read, form)
        told = fault = None
        try:
            told = await self._trainings.estimate(wish.wish)
        except TfgrpoError as error:
            fault = str(error)
        if told is None:
            filled = {**wish.fields, "lines": form.text("lines", longest=None)}
            return self._form(request, status=400, filled=filled, sets=await self._names(), fault=fault)
        return pages.page("estimate.html", token=request.state.token, wish=wish, told=told, sources=SOURCES)

    async def start(self, _: Request, form: Form) -> Response:
        """Start a run and show it."""
        wish = await asyncio.to_thread(self._wishes.read, form)
        return pages.see(f"{RUNS}/{await self._trainings.start(wish.wish)}")

    async def one(self, request: Request) -> Response:
        """Show one run: how far it is, or what came of it."""
        return await asyncio.to_thread(self._run, request, "run.html")

    async def events(self, request: Request) -> Response:
        """Stream how far a run is, as server-sent events: pieces of its page, and one `end`."""
        run_id = request.path_params["run"]
        await asyncio.to_thread(self._store.runs.run, run_id)
        return StreamingResponse(self._progress(run_id), media_type="text/event-stream", headers=pages.HEADERS)

    async def stop(self, request: Request, form: Form) -> Response:
        """Say what stopping means; ask the run to stop when that was confirmed."""
        run_id = request.path_params["run"]
        if form.text("confirmed") != "yes":
            return await asyncio.to_thread(self._run, request, "confirm_stop.html")
        await asyncio.to_thread(
            self._store.runs.ask_to_stop, (await asyncio.to_thread(self._store.runs.run, run_id)).id
        )
        return pages.see(f"{RUNS}/{run_id}")

    async def report(self, request: Request) -> Response:
        """Show the whole report of a run, the page that `tfgrpo runs report` writes."""

        def work() -> str:
            return report.html(self._store.runs.run(request.path_params["run"]))

        policy = f"{report.policy()}; frame-ancestors 'none'"
        return HTMLResponse(await asyncio.to_thread(work), headers={**pages.HEADERS, "content-security-policy": policy})

    def _run(self, request: Request, template: str) -> Response:
        run = self._store.runs.run(request.path_params["run"])
        values: dict[str, Any] = {"run": run, "state": self._state(run)}
        if run.status != "running":
            values |= {"record": Record.of(run), "deployment": self._store.sets.deployment(run.set)}
        return pages.page(template, token=request.state.token, words=words, **values)

    def _state(self, run: Run) -> str:
        """Return how a run is: its status, "stopping", or "gone" where its process ended without a word."""
        if run.status != "running":
            return run.status
        if self._store.runs.holder(LEASE) != run.id:
            return "gone"
        return "stopping" if self._store.runs.asked_to_stop(run.id) else "running"

    async def _progress(self, run_id: str) -> AsyncIterator[str]:
        yield "retry: 1000\n\n"
        shown = ""
        for _ in range(LOOKS):
            run, state = await asyncio.to_thread(self._looked, run_id)
            if state not in ("running", "stopping"):
                yield "event: end\ndata: \n\n"
                return
            piece = pages.piece("progress.html", run=run, state=state)
            if piece != shown:
                yield "".join(f"data: {line}\n" for line in piece.splitlines()) + "\n"
                shown = piece
            await asyncio.sleep(LOOK_SECONDS)

    def _looked(self, run_id: str) -> tuple[Run, str]:
        run = self._store.runs.run(run_id)
        return run, self._state(run)

    def _form(
        self, request: Request, *, filled: dict[str, Any], sets: list[str], fault: str | None = None, status: int = 200
    ) -> Response:
        values = {"filled": filled, "sets": sets, "fault": fault, "grader": self._grader, "sources": SOURCES}
        return pages.page("train.html", status=status, token=request.state.token, **values)

    async def _names(self) -> list[str]:
        return await asyncio.to_thread(self._store.sets.names)
