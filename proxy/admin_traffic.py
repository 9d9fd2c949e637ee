"""The admin API's endpoints of recorded traffic: exchanges and trajectories with their labels.

Bodies are shown as text. Nothing is changed here. No list looks for longer than `SECONDS`: where that did not suffice
it says how far back it came, and goes on from there when it is asked to.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from msgspec import structs
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proxy import places
from proxy.errors import ProxyError
from proxy.settings import DEFAULT_APP
from tfgrpo import dialects
from tfgrpo.errors import NotFound
from tfgrpo.store import Store
from tfgrpo.store.browsing import Place, Wanted
from tfgrpo.types import Bodies, Exchange

PAGE = 50
LONGEST_PAGE = 500
SECONDS = 0.25
"""How long one page looks through rows that no index finds."""

AT_ONCE = 1
"""Pages of a worker that look at the same time: each takes of the processor that live requests run on."""


class TrafficApi:
    """The endpoints of `/admin/api/exchanges` and `/admin/api/trajectories`. `seconds`: how long one page looks."""

    def __init__(self, store: Store, seconds: float = SECONDS) -> None:
        self._store = store
        self._seconds = seconds
        self._looking = asyncio.Semaphore(AT_ONCE)

    async def exchanges(self, request: Request) -> Response:
        """Recorded exchanges, the newest first; `next` of the answer, sent as `next`, turns the page."""
        query = _Query(request)
        limit = query.number("limit", PAGE, lowest=1, highest=LONGEST_PAGE)
        wanted = Wanted(
            app=query.text("app"),
            trajectory=query.text("trajectory"),
            set=query.text("set"),
            until=query.number("before", None),
        )
        behind = query.place("next", parts=2)
        query.is_all_known()
        most, look = int(limit or PAGE), self._store.browsing.exchanges
        async with self._looking:
            found = await asyncio.to_thread(look, wanted, behind=behind, limit=most, seconds=self._seconds)
        return JSONResponse(
            {
                "exchanges": [structs.asdict(one) for one in found.rows],
                "next": None if found.next is None else places.written(found.next),
                "back_to": found.back_to,
            }
        )

    async def exchange(self, request: Request) -> Response:
        """One exchange with its bodies and its labels."""
        exchange_id = request.path_params["exchange"]

        def work() -> dict[str, Any]:
            found = self._store.traffic.exchange(exchange_id)
            if found is None:
                raise NotFound(f"there is no exchange {exchange_id!r}; it may not be recorded yet, or is too old")
            labels = self._store.labels.of_trajectory(found.app, found.trajectory)
            return {
                **_with_bodies(found, self._store.traffic.bodies([found.id])),
                "labels": [structs.asdict(one) for one in labels if one.exchange == found.id],
            }

        return JSONResponse(await asyncio.to_thread(work))

    async def trajectory(self, request: Request) -> Response:
        """One trajectory: what it was given, its exchanges in order, its labels."""
        query = _Query(request)
        app, trajectory = query.text("app") or DEFAULT_APP, request.path_params["trajectory"]
        query.is_all_known()

        def work() -> dict[str, Any]:
            given = self._store.traffic.assignment(app, trajectory)
            if given is None:
                raise NotFound(f"app {app!r} has no trajectory {trajectory!r}; ?app=NAME names another app")
            exchanges = self._store.traffic.trajectory(app, trajectory)
            bodies = self._store.traffic.bodies([one.id for one in exchanges])
            return {
                **structs.asdict(given),
                "exchanges": [_with_bodies(one, bodies) for one in exchanges],
                "labels": [structs.asdict(one) for one in self._store.labels.of_trajectory(app, trajectory)],
            }

        return JSONResponse(await asyncio.to_thread(work))


class _Query:
    """The query of a request; what nobody asked for is refused by `is_all_known`."""

    def __init__(self, request: Request) -> None:
        self._given = dict(request.query_params)

    def text(self, name: str) -> str | None:
        return self._given.pop(name, None)

    def number(
        self, name: str, default: float | None, *, lowest: float = -math.inf, highest: float = math.inf
    ) -> float | None:
        text = self._given.pop(name, None)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and lowest <= value <= highest):
            said = f"between {lowest:g} and {highest:g}" if math.isfinite(lowest) else ""
            raise ProxyError(400, f"{name} must be a number {said}".strip(), code="invalid_value", param=name)
        return value

    def place(self, name: str, *, parts: int) -> Place | None:
        """Return the place of a list that an answer said; None where none is sent."""
        text = self._given.pop(name, None)
        if text is None:
            return None
        try:
            return places.read(text, parts)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ProxyError(
                400, f"{name} takes what {name} of an answer said", code="invalid_value", param=name
            ) from error

    def is_all_known(self) -> None:
        if self._given:
            names = ", ".join(repr(name) for name in self._given)
            raise ProxyError(
                400, f"unknown query parameter {names}", code="unknown_field", param=next(iter(self._given))
            )


def _with_bodies(exchange: Exchange, bodies: Mapping[str, Bodies]) -> dict[str, Any]:
    kept = bodies.get(exchange.id)
    return {
        **structs.asdict(exchange),
        "request": None if kept is None else _text(kept.request, kept.request_encoding),
        "response": None if kept is None else _text(kept.response, kept.response_encoding),
    }


def _text(body: bytes, encoding: str) -> str:
    """Return a body as a person can read it; one whose encoding cannot be undone as it came."""
    plain = dialects.decoded(body, encoding)
    return (body if plain is None else plain).decode("utf-8", "replace")
