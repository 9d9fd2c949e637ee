"""The lists of traffic: trajectories or exchanges, filtered, the newest first.

The store is read, and the page made, in a thread, and no page looks for longer than `SECONDS`: where that did not
suffice it says how far back it came, and goes on from there when it is asked to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from starlette.requests import Request
from starlette.responses import Response

from proxy.dashboard import asking, pages, searching
from proxy.dashboard.asking import Asked, View, address
from proxy.dashboard.forms import Form, refused
from tfgrpo import dialects
from tfgrpo.errors import NotFound
from tfgrpo.rewards import rewards
from tfgrpo.store import Store
from tfgrpo.store.browsing import Found, Place
from tfgrpo.types import Arm, Assignment, Exchange

ROOT: Final = "/admin/traffic"
ONE: Final = f"{ROOT}/trajectory"
ROWS: Final = 50
SECONDS: Final = 0.12
"""How long one page looks through rows or bodies."""

AT_ONCE: Final = 1
"""Pages of a worker that look at the same time: each takes of the processor that live requests run on."""

_MANY: Final = 50
"""Exchanges of a trajectory that a list looks at."""

_LARGEST: Final = 64 << 10
"""Bytes of the bodies that a list opens for what was asked."""

_GLANCE: Final = 100
"""Characters of what was asked."""


@dataclass(frozen=True, slots=True)
class _Summary:
    """What a list says of a trajectory; of one with very many exchanges, from its first ones."""

    given: Assignment
    address: str
    glance: str
    exchanges: str
    failed: int
    tokens: tuple[int, int] | None
    seconds: float | None
    rewards: Sequence[float]


@dataclass(frozen=True, slots=True)
class _Row:
    """What a list says of an exchange."""

    exchange: Exchange
    address: str
    glance: str


class TrafficPages:
    """The lists under `/admin/traffic`. `seconds`: how long one page looks."""

    def __init__(self, store: Store, seconds: float = SECONDS, *, share: float = 1.0) -> None:
        self._store = store
        self._share = share
        self._seconds = seconds
        self._looking = asyncio.Semaphore(AT_ONCE)

    async def all(self, request: Request) -> Response:
        """Show what was recorded, the newest first."""
        query = Form.query(request)
        asked, keep = asking.asked(query), query.text("keep")
        behind = asking.place_in(query, asked.view)
        if keep not in ("", "yes"):
            raise refused("keep", f"is {keep[:40]!r}; it takes yes")

        def work() -> Response:
            found = self._look(asked, behind, ROWS)
            older = None if found.next is None else asked.address(ROOT, behind=json.dumps(found.next))
            return pages.page(
                "traffic.html",
                token=request.state.token,
                asked=asked,
                rows=self._rows(asked, found.rows),
                back_to=found.back_to,
                older=older,
                further=older and f"{older}&keep=yes",
                keep=bool(keep) and not found.rows,
                paged=behind is not None,
                newest=asked.address(ROOT),
                arms=get_args(Arm),
                views=[(name, asked.address(ROOT, view=name)) for name in get_args(View)],
                sets=self._store.browsing.names("set"),
                apps=self._store.browsing.names("app"),
            )

        async with self._looking:
            return await asyncio.to_thread(work)

    async def following(self, request: Request) -> Response:
        """Go to the next older trajectory of the list that one was opened from."""
        query = Form.query(request)
        app, name, asked = query.text("app"), query.text("id"), asking.within(query, "list")

        def work() -> Response:
            given = self._store.traffic.assignment(app, name)
            if given is None:
                raise NotFound(f"app {app[:100]!r} has no trajectory {name[:100]!r}; {ROOT} lists those there are")
            behind = _place_of(given)
            found = self._trajectories(asked, behind, 1)
            if found.rows:
                return pages.see(one(found.rows[0], asked))
            return pages.see(asked.address(ROOT, view="", behind=json.dumps(found.next or behind)))

        async with self._looking:
            return await asyncio.to_thread(work)

    def _look(self, asked: Asked, behind: Place | None, limit: int) -> Found[Any]:
        if asked.view == "exchanges":
            return self._exchanges(asked, behind, limit)
        return self._trajectories(asked, behind, limit)

    def _exchanges(self, asked: Asked, behind: Place | None, limit: int) -> Found[Exchange]:
        browse = self._store.browsing

        def page(behind: Place | None, limit: int, seconds: float) -> Found[Exchange]:
            return browse.exchanges(asked.wanted, behind=behind, limit=limit, seconds=seconds)

        if not asked.text:
            return page(behind, limit, self._seconds)
        rows = searching.Rows(page, lambda some: some, lambda one: (one.started_at, one.id))
        return searching.search(self._store, asked.text, rows, behind, limit=limit, seconds=self._seconds)

    def _trajectories(self, asked: Asked, behind: Place | None, limit: int) -> Found[Assignment]:
        browse = self._store.browsing

        def page(behind: Place | None, limit: int, seconds: float) -> Found[Assignment]:
            return browse.trajectories(asked.wanted, behind=behind, limit=limit, seconds=seconds)

        if not asked.text:
            return page(behind, limit, self._seconds)
        rows = searching.Rows(page, browse.newest, _place_of)
        return searching.search(self._store, asked.text, rows, behind, limit=limit, seconds=self._seconds)

    def _rows(self, asked: Asked, found: Sequence[Any]) -> list[Any]:
        return list(self._exchange_rows(found, asked) if asked.view == "exchanges" else self._summaries(found, asked))

    def _exchange_rows(self, found: Sequence[Exchange], asked: Asked) -> Iterator[_Row]:
        glances = self._glances(found)
        for exchange in found:
            # A page of a long conversation begins with the exchange; the first page needs no place.
            behind = "" if exchange.parent is None else json.dumps((exchange.started_at, ""))
            fields = {"app": exchange.app, "id": exchange.trajectory, "behind": behind, "list": listed(asked)}
            yield _Row(exchange, f"{address(ONE, **fields)}#{exchange.id}", glances.get(exchange.id, ""))

    def _summaries(self, found: Sequence[Assignment], asked: Asked) -> Iterator[_Summary]:
        exchanges = self._store.browsing.firsts(found, limit=_MANY + 1)
        glances = self._glances([some[0] for some in exchanges if some])
        labels = self._store.browsing.labels(
            {(given.app, given.trajectory): some for given, some in zip(found, exchanges, strict=True)}
        )
        for given, some in zip(found, exchanges, strict=True):
            judged = rewards(labels[(given.app, given.trajectory)], share=self._share)
            yield _Summary(
                given,
                one(given, asked),
                glances.get(some[0].id, "") if some else "",
                f"{_MANY}+" if len(some) > _MANY else str(len(some)),
                sum(exchange.outcome != "complete" for exchange in some),
                _total(some),
                some[-1].ended_at - given.started_at if some else None,
                [reward.value for _, reward in sorted(judged.items())],
            )

    def _glances(self, exchanges: Sequence[Exchange]) -> dict[str, str]:
        """What each of these exchanges asked, in a few words; large bodies stay closed."""
        of = {one.id: dialects.by_name(one.dialect) for one in exchanges}
        found = {}
        for name, kept in self._store.browsing.bodies(list(of), largest=_LARGEST):
            dialect, body = of[name], dialects.decoded(kept.request, kept.request_encoding)
            request = None if dialect is None or body is None else dialect.read_request(body)
            if request is not None and request.messages:
                asked = next((one for one in reversed(request.messages) if one.role == "user"), request.messages[-1])
                found[name] = " ".join(asked.text[: 4 * _GLANCE].split())[:_GLANCE]
        return found


def one(given: Assignment, asked: Asked) -> str:
    """Return the address of a trajectory, opened from a list."""
    return address(ONE, app=given.app, id=given.trajectory, list=listed(asked))


def listed(asked: Asked) -> str:
    """Return what of a list its trajectories carry along, for the way back and on."""
    return address("", **asked.fields).removeprefix("?")


def _place_of(given: Assignment) -> Place:
    return given.started_at, given.app, given.trajectory


def _total(exchanges: Sequence[Exchange]) -> tuple[int, int] | None:
    known = [one for one in exchanges if one.prompt_tokens is not None or one.completion_tokens is not None]
    if not known:
        return None
    return sum(one.prompt_tokens or 0 for one in known), sum(one.completion_tokens or 0 for one in known)
