"""The door of the dashboard: who comes in, by which session, and how it refuses.

With an admin key configured, a person logs in with it and holds a cookie. Without one the rule is the admin API's:
only a person on this machine, and the cookie serves the forms alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from proxy.attempts import Attempts
from proxy.auth import Keys
from proxy.dashboard import assets, pages
from proxy.dashboard.forms import DATASET_BYTES, MOST_BYTES, Form
from proxy.dashboard.groups import GROUPS, GroupPages
from proxy.dashboard.overview import OverviewPages
from proxy.dashboard.reviews import ReviewPages
from proxy.dashboard.sessions import COOKIE, SECONDS, Sessions
from proxy.dashboard.sets import SetPages
from proxy.dashboard.traffic import ONE as TRAJECTORY
from proxy.dashboard.traffic import ROOT as TRAFFIC
from proxy.dashboard.traffic import TrafficPages
from proxy.dashboard.training import RUNS, TrainingPages
from proxy.dashboard.trajectory import TrajectoryPages
from proxy.dashboard.withdrawals import WITHDRAW, WithdrawalPages
from proxy.deployments import Deployments
from proxy.errors import ProxyError, from_tfgrpo
from proxy.label_writer import LabelWriter
from tfgrpo.errors import TfgrpoError
from tfgrpo.library import Limits
from tfgrpo.store import Store

HOME = "/admin"
SETS = "/admin/sets"
LOGIN = "/admin/login"
_LONGEST_KEY = 4096

Show = Callable[[Request], Awaitable[Response]]
Act = Callable[[Request, Form], Awaitable[Response]]


def create(
    store: Store,
    deployments: Deployments,
    keys: Keys,
    secret: bytes,
    *,
    overview: OverviewPages,
    training: TrainingPages,
    labels: LabelWriter,
    apps: Sequence[str],
    limits: Limits | None = None,
    max_share: float = 1.0,
) -> ASGIApp:
    """Return the ASGI app of `/admin` and every path below it but `/admin/api`. `apps` are those with traffic.

    `max_share` is the most that one key counts for of the labels of a rollout.
    """
    door = _Door(keys, secret)
    groups, run = GroupPages(store, apps), f"{RUNS}/{{run}}"
    traffic, trajectory = TrafficPages(store, share=max_share), TrajectoryPages(store, labels, share=max_share)
    return Starlette(
        routes=[
            Route(HOME, door.shown(overview.overview)),
            Route("/admin/", door.shown(_home)),
            Route("/admin/candidates", door.shown(overview.candidates)),
            Route(f"{assets.ROOT}/{{mark}}/{{name}}", assets.serve),
            Route(LOGIN, door.ask, methods=["GET"]),
            Route(LOGIN, door.log_in, methods=["POST"]),
            Route("/admin/logout", door.acted(door.log_out), methods=["POST"]),
            Route(TRAFFIC, door.shown(traffic.all)),
            Route(f"{TRAFFIC}/next", door.shown(traffic.following)),
            Route(TRAJECTORY, door.shown(trajectory.one)),
            Route(f"{TRAFFIC}/sent", door.shown(trajectory.sent)),
            Route(f"{TRAFFIC}/body", door.shown(trajectory.body)),
            Route(f"{TRAFFIC}/text", door.shown(trajectory.text)),
            Route(f"{TRAFFIC}/label", door.acted(trajectory.label), methods=["POST"]),
            *_of_sets(door, SetPages(store, deployments, limits), store, deployments),
            Route(GROUPS, door.shown(groups.all)),
            Route(f"{GROUPS}/{{run}}/{{step:int}}/{{place:int}}", door.shown(groups.one)),
            Route(RUNS, door.shown(training.all), methods=["GET"]),
            Route(RUNS, door.acted(training.start), methods=["POST"]),
            Route(f"{RUNS}/new", door.shown(training.ask)),
            Route(f"{RUNS}/estimate", door.acted(training.estimate, most=DATASET_BYTES), methods=["POST"]),
            Route(run, door.shown(training.one)),
            Route(f"{run}/events", door.shown(training.events)),
            Route(f"{run}/stop", door.acted(training.stop), methods=["POST"]),
            Route(f"{run}/report", door.shown(training.report)),
        ],
        exception_handlers={
            ProxyError: _refused,
            TfgrpoError: _failed,
            HTTPException: _not_routed,
            Exception: _crashed,
        },
    )


def _of_sets(door: _Door, sets: SetPages, store: Store, deployments: Deployments) -> list[Route]:
    one = f"{SETS}/{{set}}"
    return [
        Route(SETS, door.shown(sets.all)),
        Route(one, door.shown(sets.one)),
        Route(f"{one}/versions/{{version:int}}", door.shown(sets.version)),
        Route(f"{one}/versions/{{version:int}}/review", door.acted(ReviewPages(store).review), methods=["POST"]),
        Route(f"{one}/diff", door.shown(sets.diff)),
        Route(f"{one}/edit", door.shown(sets.edit), methods=["GET"]),
        Route(f"{one}/edit", door.acted(sets.store_edit), methods=["POST"]),
        Route(f"{one}/deploy", door.acted(sets.deploy), methods=["POST"]),
        Route(f"{one}/rollback", door.acted(sets.rollback), methods=["POST"]),
        Route(WITHDRAW, door.acted(WithdrawalPages(store, deployments).withdraw), methods=["POST"]),
    ]


class _Door:
    """Lets administrators through, and forms of their own pages only."""

    def __init__(self, keys: Keys, secret: bytes) -> None:
        self._keys = keys
        self._sessions = Sessions(hashlib.blake2b(keys.admin_mark, key=secret, digest_size=32).digest())
        self._wrong = Attempts()

    def shown(self, show: Show) -> Show:
        """Wrap a page that only shows."""

        async def endpoint(request: Request) -> Response:
            cookie = self._session(request)
            if cookie is None and self._keys.needs_admin_key:
                return pages.see(LOGIN)
            fresh = cookie is None
            cookie = cookie or self._sessions.begin()
            request.state.token = self._sessions.token(cookie)
            answer = await show(request)
            if fresh:
                _give(answer, request, cookie)
            return answer

        return endpoint

    def acted(self, act: Act, *, most: int = MOST_BYTES) -> Show:
        """Wrap a form of `most` bytes: it counts only with the token of the session that it came from."""

        async def endpoint(request: Request) -> Response:
            cookie = self._session(request)
            if cookie is None:
                raise ProxyError(401, "your session is over; log in and send the form again", code="no_session")
            form = await Form.sent(request, most=most)
            if not self._sessions.fits(form.text("token"), cookie):
                said = "token does not fit your session: open the page again and send the form from there"
                raise ProxyError(403, said, code="invalid_token", param="token")
            request.state.token = self._sessions.token(cookie)
            return await act(request, form)

        return endpoint

    async def ask(self, request: Request) -> Response:
        """Show the form that asks for the key."""
        if not self._keys.needs_admin_key or self._session(request) is not None:
            return pages.see(HOME)
        return pages.page("login.html", token=None, said=None)

    async def log_in(self, request: Request) -> Response:
        """Begin a session for who knows the key."""
        address = request.client.host if request.client else ""
        wait = self._wrong.wait(address)
        if wait:
            said = f"key: too many wrong ones; try again in {wait:.0f} seconds"
            answer = pages.page("login.html", status=429, token=None, said=said)
            answer.headers["retry-after"] = f"{wait:.0f}"
            return answer
        key = (await Form.sent(request)).text("key", longest=_LONGEST_KEY)
        if not self._keys.is_admin_key(key):
            self._wrong.failed(address)
            return pages.page("login.html", status=401, token=None, said="key: this is not the admin key")
        answer = pages.see(HOME)
        _give(answer, request, self._sessions.begin())
        return answer

    async def log_out(self, _: Request, __: Form) -> Response:
        """End the session of this browser."""
        answer = pages.see(LOGIN)
        answer.delete_cookie(COOKIE, path="/admin")
        return answer

    def _session(self, request: Request) -> str | None:
        """Return the session's cookie, None where there is none; ProxyError 401 for who may not even ask."""
        if not self._keys.needs_admin_key and not self._keys.is_admin(request.scope):
            said = "no admin key is configured, so this answers to this machine alone, asked as localhost"
            raise ProxyError(401, said, code="invalid_admin_key")
        cookie = request.cookies.get(COOKIE, "")
        return cookie if self._sessions.holds(cookie) else None


def _give(answer: Response, request: Request, cookie: str) -> None:
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, cookie, max_age=SECONDS, path="/admin", httponly=True, samesite="strict", secure=secure)


async def _home(_: Request) -> Response:
    return pages.see(HOME)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProxyError)
    return _said(request, error.status, error.message)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, TfgrpoError)
    told = from_tfgrpo(error)
    return _said(request, told.status, told.message)


async def _not_routed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _said(request, error.status_code, f"{request.method} {request.url.path}: {error.detail}")


async def _crashed(request: Request, __: Exception) -> Response:
    return _said(request, 500, "this is a defect of the proxy; its log has the details")


def _said(request: Request, status: int, message: str) -> Response:
    return pages.page("error.html", status=status, token=getattr(request.state, "token", None), message=message)
