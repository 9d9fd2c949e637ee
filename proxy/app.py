"""The composition root: makes every part, knows their order of starting and stopping, and who gets which path.

A request passes these stations, in this order; each adds what the next ones read:

    server      uvicorn: 431 for too large a head, the ASGI scope
    cors        only where origins are configured: preflights are answered, answers marked
    dispatch    here: the path below its base (`paths.Address`), or another endpoint: feedback, admin, health
    auth        who asks: app, keyed hash of the credential (`auth.Identity`) -> read by routing, ids, recording
    open        the exchange's id; for an API that is read, its body and what it says (`types.Request`)
    route       set, pin, upstream, credential to pay with (`routing.Route`) -> read by all that follow. With several
                upstreams what a request names may decide (`origins`)
    place       trajectory, arm, version (`linking.Placement`); published at once for later turns on any worker
    inject      the body that is sent, changed in the injected span only (`calls.Given`)
    send        head of the answer (`upstream.Answer`)
    relay       bytes as they come; copies, times and the end go to the `transcript.Transcript`
    close       in `finally`, never waited for: the answer is read, links are settled, the record is queued

State that outlives a request: the deployments (one snapshot, swapped whole by its poller), the cache of links (written
by place and close), the origins of ids (written by close), the recorder's queue (drained by its thread) and its spill
on disk (by another), the connection pool. Each has one owner, made here.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from pathlib import Path
from typing import Final

from uvicorn.config import STARTUP_FAILURE

from proxy import websockets
from proxy.auth import Keys
from proxy.bookkeeping import Bookkeeper
from proxy.bypass import Bypass
from proxy.client import Client, Receive, Scope, Send
from proxy.control import Worker, control_of
from proxy.cors import Application, Cors
from proxy.deployments import Deployments
from proxy.errors import STOPPED, ProxyError
from proxy.exchange_ids import ExchangeIds
from proxy.experiments import Experiments
from proxy.feedback import FeedbackEndpoint
from proxy.health import PATHS, Health
from proxy.label_targets import Targets
from proxy.label_writer import LabelWriter
from proxy.linking import Linker
from proxy.litellm_upstream import LitellmUpstream
from proxy.local_copy import LocalCopy, known_secret
from proxy.origins import Origins
from proxy.outstanding import Outstanding
from proxy.placing import Placing
from proxy.promotion import Promotion
from proxy.recording import Recorder
from proxy.relay import Limits, Relay
from proxy.retention import Retention
from proxy.reward_hours import RewardHours
from proxy.routing import Router
from proxy.scheduler import Scheduler, parse
from proxy.settings import Settings, load
from proxy.spill import Spill
from proxy.telemetry import Meter, Sources, Telemetry
from proxy.upstream import HttpUpstream
from tfgrpo import secret_values
from tfgrpo.errors import TfgrpoError
from tfgrpo.experiment import Levels
from tfgrpo.store import Rules, Store
from tfgrpo.weighing import Metric, Metrics

CONFIG_VARIABLE: Final = "TFGRPO_CONFIG"
"""How the parent tells its workers which configuration file to read."""

GARBAGE: Final = (50_000, 20, 100)
"""When the collector looks for cycles. Requests leave next to none, and a look at the link cache takes milliseconds."""

_log = logging.getLogger(__name__)


def create() -> App:
    """Make the application of one worker, from the settings as they are now."""
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    named = os.environ.get(CONFIG_VARIABLE)
    config = Path(named) if named else None
    try:
        return App(load(config, environ=os.environ), config)
    except TfgrpoError as error:
        # With this status the parent does not start another worker, which would fail in the same way.
        _log.error("%s", error)
        sys.exit(STARTUP_FAILURE)


class App:
    """The ASGI application. Its parts exist from the start of its lifespan to the end."""

    def __init__(self, settings: Settings, config: Path | None = None) -> None:
        self._settings = settings
        self._config = config
        self._parts: Parts | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the lifespan."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await websockets.refuse(scope, send)
        elif self._parts is not None:
            await self._parts.serve(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self._parts = Parts(self._settings, self._config)
            await self._parts.start()
        except TfgrpoError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._parts.stop()
        await send({"type": "lifespan.shutdown.complete"})


class Parts:
    """Every part of one worker. Made, started and stopped inside the event loop."""

    def __init__(self, settings: Settings, config: Path | None) -> None:
        store = _opened(settings)
        folder = settings.outage.folder_for(settings.store.url)
        copy = LocalCopy(folder) if store.shared else None
        secret = known_secret(store, folder)
        peers = store.shared or settings.server.workers > 1
        self._store = store
        self._upstream = HttpUpstream(settings)
        self._deployments = Deployments(
            store, peers=peers, limits=settings.training.selected, copy=copy, ours=_secrets(settings)
        )
        self._spill = Spill(store, folder, limit=settings.outage.spill_bytes)
        self._recorder = _recorder(settings, store, self._spill, peers=peers)
        self._labels = LabelWriter(store)
        self._outstanding = _outstanding(settings, store, self._deployments)
        self._linker = Linker(
            store,
            self._deployments,
            self._recorder,
            secret=secret,
            ignore=settings.grouping.patterns,
            system=settings.grouping.system,
            peers=peers,
            outstanding=self._outstanding,
        )
        experiments = _experiments(settings, store)
        self._promotion = _promotion(settings, store, self._deployments, experiments)
        self._bypass = Bypass(store, configured=settings.server.bypass, peers=peers)
        self._retention = Retention(store, experiments, settings.retention, sums=_reward_hours(settings, store))
        self._scheduler = _scheduler(settings, store, config)
        self._router = Router(settings)
        self._litellm = LitellmUpstream(settings, self._router.models)
        self._origins = Origins(store) if len(self._router.upstreams) > 1 else None
        self._books = Bookkeeper(self._linker, self._recorder, self._origins)
        keys, ids = Keys(settings, secret), ExchangeIds(secret)
        self._relay = Relay(
            keys=keys,
            router=self._router,
            origins=self._origins,
            ids=ids,
            placing=Placing(self._deployments, self._linker, self._books, bypass=self._bypass, secret=secret),
            upstream=self._upstream,
            litellm=self._litellm,
            books=self._books,
            lender=self._recorder,
            limits=_limits(settings),
        )
        origins = settings.server.cors_origins
        self.serve: Application = Cors(self.dispatch, origins) if origins else self.dispatch
        targets = Targets(store, self._recorder, ids, keys, [app.name for app in settings.apps])
        self._feedback = FeedbackEndpoint(keys, targets, self._labels)
        self._keys = keys
        self._telemetry = self._observed(settings, experiments)
        self._health = self._healthy()
        self._control = control_of(self._worker(settings, config, experiments, secret=secret))

    def _worker(self, settings: Settings, config: Path | None, experiments: Experiments, *, secret: bytes) -> Worker:
        """Return what administrators see and change of all this."""
        return Worker(
            settings=settings,
            config=config,
            secret=secret,
            store=self._store,
            deployments=self._deployments,
            experiments=experiments,
            labels=self._labels,
            bypass=self._bypass,
            keys=self._keys,
            status=self._health.status,
        )

    def _healthy(self) -> Health:
        return Health(
            self._router,
            relay=self._relay,
            recorder=self._recorder,
            linker=self._linker,
            books=self._books,
            spill=self._spill,
            deployments=self._deployments,
            retention=self._retention,
            bypass=self._bypass,
            lines_lost=self._telemetry.dropped_lines,
        )

    def _observed(self, settings: Settings, experiments: Experiments) -> Telemetry:
        """Have what is switched on told of each exchange."""
        sources = Sources(lambda: self._recorder.stats, lambda: self._relay.in_flight, self._store, experiments)
        made = Telemetry(settings.telemetry, sources)
        self._books.observers = made.observers
        if made.tracer is not None:
            self._relay.tracer, self._labels.observers = made.tracer.begin, (made.tracer.label,)
        return made

    async def start(self) -> None:
        """Start what runs beside requests."""
        translated = [one.translated.provider for one in self._router.upstreams if one.translated is not None]
        if translated:
            await self._litellm.load(translated)
        self._spill.start()
        self._recorder.start()
        self._labels.start()
        await self._deployments.start()
        await self._bypass.start()
        await self._outstanding.start()
        await self._telemetry.start()
        if self._promotion is not None:
            await self._promotion.start()
        await self._retention.start()
        if self._scheduler is not None:
            await self._scheduler.start()

    async def stop(self) -> None:
        """Stop in the reverse order of what depends on what: nothing is lost that was taken in."""
        await self._control.stop()
        if self._scheduler is not None:
            await self._scheduler.stop()
        await self._retention.stop()
        if self._promotion is not None:
            await self._promotion.stop()
        await self._outstanding.stop()
        await self._books.drain()
        await self._telemetry.stop()
        await self._bypass.stop()
        await self._deployments.stop()
        await asyncio.to_thread(self._labels.stop)
        await asyncio.to_thread(self._recorder.stop)
        await asyncio.to_thread(self._spill.stop)
        self._linker.close()
        if self._origins is not None:
            self._origins.close()
        await self._upstream.close()
        await self._litellm.close()
        self._store.close()

    async def dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the endpoint of its path."""
        path = scope["raw_path"].decode("latin-1")
        try:
            address = self._router.locate(path)
        except ProxyError as error:
            await Client(receive, send).refuse(error)
            return
        if address is None:
            await self._own(path, scope, receive, send)
        elif address.below in ("/feedback", "/feedback/"):
            await self._label(scope, receive, send)
        else:
            await self._relay(scope, receive, send, address)

    async def _label(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._feedback(scope, receive, send)
        except asyncio.CancelledError:
            await Client(receive, send).refuse(STOPPED)

    async def _measure(self, meter: Meter, scope: Scope, client: Client) -> None:
        try:
            self._keys.admit(scope)
        except ProxyError as error:
            await client.refuse(error)
            return
        body = await meter.exposition()
        await client.start(200, [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")])
        await client.send(body, more=False)

    async def _own(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if path == "/admin" or path.startswith("/admin/"):
            await self._control(scope, receive, send)
        elif path in PATHS and scope["method"] in ("GET", "HEAD"):
            await self._health(path, send)
        elif path == "/metrics" and self._telemetry.meter is not None:
            await self._measure(self._telemetry.meter, scope, Client(receive, send))
        else:
            hint = "the API begins with /v1: is the base URL http://HOST:PORT/v1?"
            await Client(receive, send).refuse(ProxyError(404, f"nothing is served here; {hint}", code="not_found"))


def _opened(settings: Settings) -> Store:
    rules = Rules(_secrets(settings), approval=settings.training.approval == "required")
    return Store.open(settings.store.url, later=True, rules=rules)


def _secrets(settings: Settings) -> tuple[str, ...]:
    return secret_values.of(settings, store=settings.store.url)


def _recorder(settings: Settings, store: Store, spill: Spill, *, peers: bool) -> Recorder:
    of = settings.recorder
    return Recorder(store, queue_bytes=of.queue_bytes, body_bytes=of.body_bytes, peers=peers, spill=spill)


def _limits(settings: Settings) -> Limits:
    server = settings.server
    return Limits(
        body=server.max_body_bytes,
        kept=settings.recorder.body_bytes,
        in_flight=server.max_in_flight,
        seconds=settings.timeouts.total,
    )


def _scheduler(settings: Settings, store: Store, config: Path | None) -> Scheduler | None:
    if settings.training.schedule is None:
        return None
    named = dict.fromkeys([name for app in settings.apps for name in app.sets] + [r.set for r in settings.routes])
    return Scheduler(store, parse(settings.training.schedule), sets=tuple(named), config=config)


def _experiments(settings: Settings, store: Store) -> Experiments:
    of, levels = settings.experiment, settings.promotion
    return Experiments(
        store,
        window=of.label_window,
        early=of.early_window,
        levels=Levels(better=levels.better, worse=levels.worse, errors=levels.errors),
        metrics=_metrics(settings),
        safety=settings.safety,
    )


def _reward_hours(settings: Settings, store: Store) -> RewardHours:
    return RewardHours(store, metrics=_metrics(settings), share=settings.safety.max_share)


def _metrics(settings: Settings) -> Metrics:
    return {name: Metric(one.weight, one.worst, one.best) for name, one in settings.training.metrics.items()}


def _outstanding(settings: Settings, store: Store, deployments: Deployments) -> Outstanding:
    most = settings.promotion.outstanding if settings.promotion.mode == "auto" else None
    return Outstanding(store, deployments, most=most, patience=settings.experiment.early_window)


def _promotion(
    settings: Settings, store: Store, deployments: Deployments, experiments: Experiments
) -> Promotion | None:
    if settings.promotion.mode != "auto":
        return None
    limits = settings.training.deployable
    return Promotion(store, deployments, experiments, share=settings.promotion.share, limits=limits)
