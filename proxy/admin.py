"""The control plane as JSON under `/admin/api`: who may use it, which call goes where, how it refuses.

What the calls do stands in `admin_sets`, `admin_experiment`, `admin_traffic` and `admin_bypass`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.status import HTTP_405_METHOD_NOT_ALLOWED
from starlette.types import ASGIApp, Receive, Scope, Send

from proxy.admin_bypass import BypassApi
from proxy.admin_experiment import ExperimentApi
from proxy.admin_reviews import ReviewsApi
from proxy.admin_sets import SetsApi
from proxy.admin_traffic import TrafficApi
from proxy.admin_withdrawals import WithdrawalsApi
from proxy.auth import Keys
from proxy.bypass import Bypass
from proxy.deployments import Deployments
from proxy.errors import ProxyError, envelope, from_tfgrpo
from proxy.openapi import QUERIES, Calls, document
from tfgrpo.errors import TfgrpoError
from tfgrpo.library import Limits
from tfgrpo.store import Store

DOCUMENT: Final = "/admin/openapi.json"
"""Where all of this is described."""


def create(
    store: Store,
    deployments: Deployments,
    keys: Keys,
    live: ExperimentApi,
    limits: Limits | None = None,
    *,
    bypass: Bypass,
) -> ASGIApp:
    """Return the ASGI app of every path under `/admin/api`. It lets nobody in but an administrator."""
    sets, traffic, switch = SetsApi(store, deployments, limits), TrafficApi(store), BypassApi(store, bypass)
    reviews, withdrawals = ReviewsApi(store), WithdrawalsApi(store, deployments)
    one_set = "/admin/api/sets/{set}"
    calls = [
        _route("/admin/api/sets", GET=sets.sets),
        _route(one_set, GET=sets.one_set),
        _route(f"{one_set}/versions", GET=sets.versions, POST=sets.add_version),
        _route(f"{one_set}/versions/{{version:int}}", GET=sets.version),
        _route(f"{one_set}/versions/{{version:int}}/approve", POST=reviews.approve),
        _route(f"{one_set}/versions/{{version:int}}/reject", POST=reviews.reject),
        _route(f"{one_set}/deployment", GET=sets.deployment, PUT=sets.deploy),
        _route(f"{one_set}/rollback", POST=sets.rollback),
        _route(f"{one_set}/history", GET=sets.history),
        _route(f"{one_set}/experiment", GET=live.experiment),
        _route("/admin/api/withdrawals", GET=withdrawals.withdrawals, POST=withdrawals.withdraw),
        _route("/admin/api/bypass", GET=switch.bypass, PUT=switch.switch),
        _route("/admin/api/exchanges", GET=traffic.exchanges),
        _route("/admin/api/exchanges/{exchange}", GET=traffic.exchange),
        _route("/admin/api/trajectories/{trajectory:path}", GET=traffic.trajectory),
    ]
    app = Starlette(
        routes=[*calls, _described(calls)],
        exception_handlers={
            ProxyError: _refused,
            TfgrpoError: _failed,
            HTTPException: _not_routed,
            Exception: _crashed,
        },
    )
    return _Guard(app, keys)


class _Guard:
    """Lets administrators through."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._keys.admit(scope)
        except ProxyError as error:
            await _response(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _route(path: str, **handlers: Callable[[Request], Awaitable[Response]]) -> Calls:
    """Return one route for all methods of a path, so that a 405 names every one of them."""

    async def endpoint(request: Request) -> Response:
        handler = handlers["GET" if request.method == "HEAD" else request.method]
        _check_query(request, QUERIES.get(handler.__name__, {}))
        return await handler(request)

    return Calls(path, endpoint, handlers)


def _check_query(request: Request, known: Collection[str]) -> None:
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        names = ", ".join(repr(name) for name in unknown)
        raise ProxyError(400, f"unknown query parameter {names}", code="unknown_field", param=unknown[0])
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if count > 1:
            raise ProxyError(400, f"{name} stands in the query {count} times", code="invalid_value", param=name)


def _described(calls: Sequence[Calls]) -> Route:
    written = document(calls)

    async def endpoint(_: Request) -> Response:
        return JSONResponse(written)

    return Route(DOCUMENT, endpoint)


def _response(error: ProxyError) -> Response:
    status, headers, body = envelope(error)
    answer = Response(body, status)
    answer.raw_headers = headers
    return answer


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, ProxyError)
    return _response(error)


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, TfgrpoError)
    return _response(from_tfgrpo(error))


async def _not_routed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said, code = f"there is no {request.url.path} here", "not_found"
    if error.status_code == HTTP_405_METHOD_NOT_ALLOWED:
        said, code = f"{request.url.path} does not take {request.method}", "method_not_allowed"
    headers = tuple((name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items())
    return _response(ProxyError(error.status_code, said, code=code, headers=headers))


async def _crashed(_: Request, __: Exception) -> Response:
    return _response(ProxyError(500, "this is a defect of the proxy; its log has the details", code="internal_error"))
