"""Which upstream made an id: responses, files, batches, threads live where they were made, and name no model.

Only made where there are several upstreams. It remembers what this worker saw, asks the store once about the rest, and
never fails a request: an id that nobody knows goes the way of a request without one. It does not choose a route.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from urllib.parse import unquote

import msgspec

from proxy.calls import Call
from proxy.recall import PATIENCE
from tfgrpo.dialects import decoded
from tfgrpo.errors import StoreError
from tfgrpo.store import Store
from tfgrpo.types import Bodies, Request, Response

REMEMBERED: Final = 50_000
MOST_NAMED: Final = 32
"""So many of the ids in one request are looked for: all of them come from one place."""

LARGEST_OBJECT: Final = 64 * 1024
"""A longer answer of an API that is not read is no object that was made: its id is not looked for."""

_ID: Final = re.compile(r"(?=.*[0-9])[!-~]{1,1000}")
"""Every id of these APIs holds a digit, and no word of their paths does (`/fine_tuning/jobs`).
A gateway's are long: LiteLLM's proxy gives a response 425 characters."""

_MODELS: Final = "/models/"

_log = logging.getLogger(__name__)


class _Asked(msgspec.Struct, frozen=True):
    """What a body that is read as no API may name beside a model."""

    input_file_id: str | None = None
    assistant_id: str | None = None


class _Object(msgspec.Struct, frozen=True):
    """What an upstream made."""

    id: str | None = None


_asked = msgspec.json.Decoder(_Asked).decode
_object = msgspec.json.Decoder(_Object).decode
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def named(below: str, request: Request | None, body: bytes | None) -> tuple[str, ...]:
    """Return the ids of things made before that a request names, the weightiest first.

    `below` is its path below the base; `body` is looked at where `request` is None, since no dialect has read it.
    """
    ids: Iterable[str | None] = below.split("/")[2:]
    if request is not None:
        ids = (*ids, request.previous_response_id, *reversed(request.references))
    elif body:
        ids = (*ids, *_in_body(body))
    return tuple(dict.fromkeys(id_ for id_ in ids if id_ is not None and _ID.fullmatch(id_)))[:MOST_NAMED]


def model_in(below: str) -> str | None:
    """Return the model that a path names: `/models/NAME`."""
    return unquote(below.removeprefix(_MODELS).removesuffix("/")) if below.startswith(_MODELS) else None


def made(call: Call, bodies: Bodies) -> str | None:
    """Return the id of what a request that is read as no API had made; None when it made nothing.

    Only a POST makes something; one that changes something is answered with the id that its path names.
    """
    if call.method != "POST" or not bodies.response_type.lower().startswith("application/json"):
        return None
    plain = decoded(bodies.response, bodies.response_encoding) if len(bodies.response) <= LARGEST_OBJECT else None
    try:
        id_ = _object(plain).id if plain else None
    except _UNREADABLE:
        return None
    return id_ if id_ is not None and _ID.fullmatch(id_) and id_ not in call.path.split("/") else None


class Origins:
    """The upstreams by the ids that they gave, `size` of them in memory. Ids are known within their app alone."""

    def __init__(self, store: Store, *, patience: float = PATIENCE, size: int = REMEMBERED) -> None:
        self._store = store
        self._patience = patience
        self._most = size
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="origins")
        self._answering = True

    def close(self) -> None:
        """Give up the thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def remember(self, app: str, ids: Iterable[str], upstream: str) -> None:
        """Know from now on which upstream gave these ids."""
        for id_ in ids:
            if _ID.fullmatch(id_):
                self._known[app, id_] = upstream
                self._known.move_to_end((app, id_))
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    async def find(self, app: str, ids: Sequence[str]) -> str | None:
        """Return the name of the upstream that gave the first of these ids that is known to have been given to `app`.

        What this worker does not remember is asked of the store, once, for `patience` seconds at most.
        """
        found = self._remembered(app, ids)
        if found is None:
            try:
                async with asyncio.timeout(self._patience):
                    stored = await asyncio.get_running_loop().run_in_executor(
                        self._threads, self._store.traffic.upstreams_of, app, ids
                    )
            except (TimeoutError, StoreError) as error:
                if self._answering:
                    _log.warning("requests are routed without the store: %s", str(error) or "it gave no answer in time")
                self._answering = False
                return None
            self._answering = True
            for id_, upstream in stored.items():
                self.remember(app, (id_,), upstream)
            found = self._remembered(app, ids)
        return found

    def learn(self, call: Call, response: Response | None, bodies: Bodies) -> str | None:
        """Remember the ids of an answer; return the one that its exchange is found by."""
        id_ = response.id if response is not None else made(call, bodies) if call.dialect is None else None
        references = response.references if response is not None else ()
        self.remember(call.identity.app, (*references, *([id_] if id_ else [])), call.route.upstream.name)
        return id_

    def _remembered(self, app: str, ids: Iterable[str]) -> str | None:
        for id_ in ids:
            upstream = self._known.get((app, id_))
            if upstream is not None:
                self._known.move_to_end((app, id_))
                return upstream
        return None


def _in_body(body: bytes) -> tuple[str | None, ...]:
    try:
        asked = _asked(body)
    except _UNREADABLE:
        return ()
    return asked.input_file_id, asked.assistant_id
