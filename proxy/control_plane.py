"""The control plane of one worker: the admin API and the pages, made from its parts, and which path belongs to which.

Only `control` knows of it, and loads it when an administrator first asks. What the calls do stands in `admin`, what the
pages show in `dashboard`.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from proxy import admin, dashboard
from proxy.admin_experiment import ExperimentApi
from proxy.control import Worker
from proxy.settings import DEFAULT_APP
from proxy.trainings import Datasets, Trainings


class ControlPlane:
    """The ASGI app of `/admin` and every path below it."""

    def __init__(self, api: ASGIApp, pages: ASGIApp, overview: dashboard.OverviewPages, trainings: Trainings) -> None:
        self._api = api
        self._pages = pages
        self._overview = overview
        self._trainings = trainings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope["raw_path"].decode("latin-1")
        of_api = path.startswith("/admin/api") or path == admin.DOCUMENT
        await (self._api if of_api else self._pages)(scope, receive, send)

    async def stop(self) -> None:
        """End what administrators started: training processes, and a look at the candidates."""
        await self._trainings.stop()
        await self._overview.stop()


def create(worker: Worker) -> ControlPlane:
    """Return the control plane of a worker."""
    dashboard.prepare()
    trainings, overview = Trainings(worker.store, config=worker.config), _overview(worker)
    return ControlPlane(_api(worker), _pages(worker, overview, trainings), overview, trainings)


def _api(worker: Worker) -> ASGIApp:
    live = ExperimentApi(worker.experiments, worker.settings.promotion.mode)
    limits = worker.settings.training.deployable
    return admin.create(worker.store, worker.deployments, worker.keys, live, limits, bypass=worker.bypass)


def _overview(worker: Worker) -> dashboard.OverviewPages:
    training = worker.settings.training
    return dashboard.OverviewPages(
        worker.store,
        worker.deployments,
        worker.experiments,
        status=worker.status,
        budget=dashboard.Budget(training.budget, chosen=training.selected is not None),
        mode=worker.settings.promotion.mode,
    )


def _pages(worker: Worker, overview: dashboard.OverviewPages, trainings: Trainings) -> ASGIApp:
    settings, store = worker.settings, worker.store
    datasets = Datasets(settings.outage.folder_for(settings.store.url).with_suffix(".datasets"))
    grader = settings.training.grader
    return dashboard.create(
        store,
        worker.deployments,
        worker.keys,
        worker.secret,
        overview=overview,
        training=dashboard.TrainingPages(store, trainings, datasets, grader.name if grader is not None else None),
        labels=worker.labels,
        apps=[DEFAULT_APP, *(app.name for app in settings.apps)],
        limits=settings.training.deployable,
        max_share=settings.safety.max_share,
    )
