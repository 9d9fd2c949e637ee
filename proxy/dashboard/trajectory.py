"""The pages of one trajectory: its conversation to read and to label, and the bytes of its exchanges.

The store is read, and the page made, in a thread. A page reads a bounded part of what was recorded; all of a text, or
of a body, is an address of its own.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from proxy.dashboard import asking, conversation, pages
from proxy.dashboard.asking import Asked, address
from proxy.dashboard.fitting import Room
from proxy.dashboard.forms import Form, refused
from proxy.dashboard.traffic import ONE, ROOT, listed
from proxy.label_writer import LabelWriter
from tfgrpo import library
from tfgrpo.errors import NotFound
from tfgrpo.rewards import rewards
from tfgrpo.selection import part
from tfgrpo.store import Store
from tfgrpo.store.browsing import Place
from tfgrpo.types import EMPTY_VERSION, Assignment, Bodies, Exchange, Label, Message

SOURCE: Final = "dashboard"
LABELLER: Final = "admin"
"""The credential of its labels: no keyed hash reads like this."""

TURNS: Final = 20
"""Exchanges of a trajectory on one page."""

MOST_READ: Final = 8 << 20
"""Bytes of bodies that one page reads; behind them it goes on with the next."""

SENT_SHOWN: Final = 60_000
"""Bytes of a body on a page, of each piece of it: before the block, the block, behind it."""

LABELS_SHOWN: Final = 50
VALUES: Final = ("1", "0", *(f"0.{tenth}" for tenth in range(1, 10)))
PARTS: Final = ("request", "answer")


class TrajectoryPages:
    """The pages of one trajectory under `/admin/traffic`."""

    def __init__(self, store: Store, writer: LabelWriter, *, share: float) -> None:
        self._store = store
        self._share = share
        self._writer = writer

    async def one(self, request: Request) -> Response:
        """Show a trajectory: what it was given, its conversation, its labels."""
        query = Form.query(request)
        app, name, behind = query.text("app"), query.text("id"), asking.place(query, "behind", 2)
        asked = asking.within(query, "list")
        return await asyncio.to_thread(self._read, request.state.token, app, name, behind, asked)

    async def sent(self, request: Request) -> Response:
        """Show the bytes of one exchange: the request as it went upstream, and the answer."""
        name = Form.query(request).text("id")

        def work() -> Response:
            exchange, kept, block = self._exchange(name)
            sent = conversation.sent(exchange, kept, block)
            answer = conversation.answered(kept)
            return pages.page(
                "sent.html",
                token=request.state.token,
                exchange=exchange,
                sent=sent,
                segments=[(piece[:SENT_SHOWN].decode("utf-8", "replace"), ours) for piece, ours in sent.segments],
                sizes={"request": len(sent.body), "answer": len(answer)},
                answer=answer[:SENT_SHOWN].decode("utf-8", "replace"),
                most=SENT_SHOWN,
                wholes={part: address(f"{ROOT}/body", id=name, part=part) for part in PARTS},
                trajectory=address(ONE, app=exchange.app, id=exchange.trajectory),
            )

        return await asyncio.to_thread(work)

    async def body(self, request: Request) -> Response:
        """Send the bytes of a request as it went upstream, or of an answer, as a file."""
        query = Form.query(request)
        name, wanted = query.text("id"), query.text("part")
        if wanted not in PARTS:
            raise refused("part", f"is {wanted[:40]!r}; it takes {' or '.join(PARTS)}")

        def work() -> Response:
            exchange, kept, block = self._exchange(name)
            found = conversation.answered(kept)
            if wanted == "request":
                found = conversation.sent(exchange, kept, block).body
            return pages.file(found, f"{exchange.id}.{wanted}")

        return await asyncio.to_thread(work)

    async def text(self, request: Request) -> Response:
        """Show all of one message as plain text."""
        query = Form.query(request)
        name, message, answer = query.text("id"), query.number("message"), query.number("answer")
        if (message is None) == (answer is None):
            raise refused("message", "or answer: one of them says which text")

        def work() -> Response:
            exchange, kept, block = self._exchange(name)
            if answer is None:
                request = conversation.request_of(exchange, kept, block)
                found = list(request.messages if request else ())
            else:
                response = conversation.response_of(exchange, kept)
                found = [choice.message for choice in (response.choices if response else ())]
            at = message if answer is None else answer
            if at is None or at >= len(found):
                raise NotFound(f"exchange {name[:100]!r} has no such text; it has {len(found)}, from 0 on")
            return pages.plain(_whole(found[at]))

        return await asyncio.to_thread(work)

    async def label(self, request: Request, form: Form) -> Response:
        """Store a person's judgement of a trajectory. The newest one of this page counts."""
        app, name, value = form.text("app"), form.text("id"), form.text("value")
        if value not in VALUES:
            raise refused("value", f"is {value[:40]!r}; it takes {', '.join(VALUES)}")
        asked, comment = asking.within(form, "list"), form.text("comment") or None
        given, choice = await asyncio.to_thread(self._chosen, app, name, form.number("choice") or 0)
        made = Label(
            f"dashboard-{uuid.uuid4().hex}", given.app, None, given.trajectory, choice, "reward", float(value),
            SOURCE, LABELLER, time.time(), comment,
        )  # fmt: skip
        await self._writer.add([made])
        if "hx-request" not in request.headers:
            return pages.see(address(ONE, app=app, id=name, list=listed(asked)))
        return await asyncio.to_thread(self._labelled, request.state.token, given, made, asked)

    def _chosen(self, app: str, name: str, choice: int) -> tuple[Assignment, int]:
        """Return the trajectory, and the one of its answers that is judged, once it is known to have so many."""
        given = self._given(app, name)
        choices = _choices(self._store.browsing.first(app, name, limit=TURNS))
        if choice >= choices:
            raise refused("choice", f"is {choice}; the trajectory has {choices}, from 0 on")
        return given, choice

    def _labelled(self, token: str, given: Assignment, made: Label, asked: Asked) -> Response:
        first = self._store.browsing.first(given.app, given.trajectory, limit=TURNS)
        return pages.page("labels.html", token=token, stored=made, **self._judged(given, first), **_ways(given, asked))

    def _read(self, token: str, app: str, name: str, behind: Place | None, asked: Asked) -> Response:
        given = self._given(app, name)
        exchanges = self._store.browsing.first(app, name, behind=behind, limit=TURNS + 1)
        bodies, shown = self._bodies(exchanges[:TURNS])
        known = self._before(shown[0]) if behind is not None and shown else ()
        turns = conversation.turns(shown, bodies, self._blocks(given), known=known)
        last = shown[-1] if len(exchanges) > len(shown) else None
        on = "" if last is None else json.dumps((last.started_at, last.id))
        fields = {"app": app, "id": name, "list": listed(asked)}
        return pages.page(
            "trajectory.html",
            token=token,
            turns=Room().turns(turns),
            stored=None,
            later=address(ONE, **fields, behind=on) if on else None,
            beginning=address(ONE, **fields) if behind is not None else None,
            **self._judged(given, exchanges),
            **_ways(given, asked),
        )

    def _judged(self, given: Assignment, exchanges: Sequence[Exchange]) -> dict[str, Any]:
        key = given.app, given.trajectory
        placed = self._store.browsing.labels({key: exchanges})[key]
        judged = sorted(rewards(placed, share=self._share).items())
        shown = [one.label for one in placed[:LABELS_SHOWN]]
        return {
            "labels": shown,
            "more_labels": len(placed) - len(shown),
            "rewards": [(choice, one.value) for (_, choice), one in judged],
            "choices": _choices(exchanges),
        }

    def _bodies(self, exchanges: list[Exchange]) -> tuple[dict[str, Bodies], list[Exchange]]:
        """Return bodies as long as they fit, with the exchanges that were looked at: one at least."""
        found: dict[str, Bodies] = {}
        left = MOST_READ
        for name, kept in self._store.browsing.bodies([one.id for one in exchanges]):
            if left < 0:
                return found, exchanges[: [one.id for one in exchanges].index(name)]
            found[name] = kept
            left -= len(kept.request) + len(kept.response)
        return found, exchanges

    def _before(self, exchange: Exchange) -> tuple[Message, ...]:
        """The conversation that an exchange continues, as far as it is kept."""
        parent = None if exchange.parent is None else self._store.traffic.exchange(exchange.parent)
        if parent is None:
            return ()
        return conversation.said_by(parent, self._store.traffic.bodies([parent.id]).get(parent.id))

    def _exchange(self, name: str) -> tuple[Exchange, Bodies, str]:
        """Return an exchange with its bodies and the block it was given."""
        exchange = self._store.traffic.exchange(name)
        if exchange is None:
            raise NotFound(f"there is no exchange {name[:100]!r}; it may not be recorded yet, or is too old")
        kept = self._store.traffic.bodies([name]).get(name)
        if kept is None:
            raise NotFound(f"exchange {name[:100]!r} has nothing to show: {conversation.why(exchange, None)}")
        given = self._store.traffic.assignment(exchange.app, exchange.trajectory)
        return exchange, kept, self._blocks(given)(exchange)

    def _blocks(self, given: Assignment | None) -> conversation.BlockOf:
        """The blocks of a trajectory's exchanges. The entries chosen for it count as long as it has that version."""
        known: dict[tuple[str, int], str] = {}

        def block(exchange: Exchange) -> str:
            if exchange.set is None or exchange.version == EMPTY_VERSION:
                return ""
            key = exchange.set, exchange.version
            if key not in known:
                known[key] = self._block(*key, given)
            return known[key]

        return block

    def _block(self, set_name: str, version: int, given: Assignment | None) -> str:
        try:
            found = self._store.sets.version(set_name, version).library
        except NotFound:
            return ""
        chosen = given.chosen if given is not None and given.version == version else None
        return library.render(found if chosen is None else part(found, chosen.split()), name=set_name, version=version)

    def _given(self, app: str, name: str) -> Assignment:
        given = self._store.traffic.assignment(app, name)
        if given is None:
            raise NotFound(f"app {app[:100]!r} has no trajectory {name[:100]!r}; {ROOT} lists those there are")
        return given


def _ways(given: Assignment, asked: Asked) -> dict[str, Any]:
    """What the page says of a trajectory, and where it leads."""
    fields = {"app": given.app, "id": given.trajectory, "list": listed(asked)}
    return {
        "given": given,
        "list": listed(asked),
        "back": asked.address(ROOT),
        "following": address(f"{ROOT}/next", **fields),
        "scale": [(value, value[-1]) for value in VALUES[2:]],
    }


def _choices(exchanges: Sequence[Exchange]) -> int:
    """How many answers were asked for: each is a rollout of its own."""
    return max((one.choices for one in exchanges), default=1)


def _whole(message: Message) -> str:
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    return "\n\n".join([message.text, *calls] if message.text else calls)
