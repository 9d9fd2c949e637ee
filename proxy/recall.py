"""Brings into a worker's memory the links that it does not know: from answers still being read, and from the store.

It never fails; what was not found in the time there is, is not known. It does not decide where a
request belongs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from proxy.clues import Clues
from proxy.link_cache import LinkCache, Node
from tfgrpo.errors import StoreError
from tfgrpo.store import FoundLink, Store
from tfgrpo.types import Assignment

PATIENCE = 0.05
"""How long a request waits, in seconds, for evidence of what it continues."""

AGAIN = 0.012
"""With other workers: the pause before asking once more for a link that may be on its way to the store."""

IDLE_SECONDS = 24 * 3600.0
"""How long a trajectory keeps what it was given without being heard of."""

EXAMPLE_AFTER = 2
"""How often answers of unknown origin must have come before they count as examples: a client may ask once more."""

REMEMBERED_MISSES = 10_000

LOST_SECONDS = 600.0
"""How long it is looked whether another worker knows what a trajectory continues: its links may have been on disk."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Stats:
    """Counters of one worker: `lookups` of the store, and of these `misses` that found nothing and `unanswered`."""

    lookups: int = 0
    misses: int = 0
    unanswered: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    """What the store knew. `seen_at`: when the named trajectory was last heard of."""

    links: tuple[FoundLink, ...]
    named: Assignment | None
    seen_at: float


class Recall:
    """Fills `cache` from the store. `peers`: other workers write to the same store. `patience`: seconds at most."""

    def __init__(
        self,
        store: Store,
        cache: LinkCache,
        *,
        peers: bool,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._cache = cache
        self._peers = peers
        self._patience = patience
        self._clock = clock
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="recall")
        self._readings: defaultdict[str, list[asyncio.Event]] = defaultdict(list)
        self._missed: OrderedDict[str, int] = OrderedDict()
        self._answering = True
        self.stats = Stats()

    def close(self) -> None:
        """Give up the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def reading(self, scope: str) -> Iterator[None]:
        """Hold while an answer of this scope is read elsewhere: whoever may continue it waits."""
        done = asyncio.Event()
        self._readings[scope].append(done)
        try:
            yield
        finally:
            done.set()
            self._readings[scope].remove(done)
            if not self._readings[scope]:
                del self._readings[scope]

    async def bring(self, clues: Clues) -> bool:
        """Bring what the request needs into memory; False when the store gave no answer in time."""
        if not self._missing(clues):
            return True
        deadline = asyncio.get_running_loop().time() + self._patience
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await self._answers_read(clues)
        while missing := self._missing(clues):
            if not await self._ask(clues, missing, deadline):
                return False
            if not self._may_be_on_its_way(clues) or asyncio.get_running_loop().time() + AGAIN >= deadline:
                break
            await asyncio.sleep(AGAIN)
        self._remember_miss(clues)
        return True

    async def _answers_read(self, clues: Clues) -> None:
        while self._lacks_parent(clues) and clues.scope in self._readings:
            await self._readings[clues.scope][0].wait()

    def _known(self, key: str) -> bool:
        return bool(self._cache.find(key))

    def _lacks_parent(self, clues: Clues) -> bool:
        known = any(self._known(one.key) for one in clues.chain)
        return clues.continues and not known and not self.is_example(clues)

    def _missing(self, clues: Clues) -> list[str]:
        missing = [key for key in (clues.named, clues.failed) if key is not None and not self._known(key)]
        if self._lacks_parent(clues) or self._may_be_known_elsewhere(clues):
            missing += [one.key for one in clues.chain]
        if clues.tasks is not None:
            # Another worker may have begun a further task of a session that we remember.
            stale = self._peers and not clues.continues
            missing += [clues.tasks] if stale or not self._known(clues.tasks) else []
        return missing

    def _may_be_known_elsewhere(self, clues: Clues) -> bool:
        """Say whether all that is known here of a conversation was begun for want of evidence, and not long ago."""
        if not self._peers:
            return False
        nodes = [node for one in clues.chain for node in self._cache.find(one.key)]
        since = self._clock() - LOST_SECONDS
        return bool(nodes) and all(node.lost and node.assignment.started_at > since for node in nodes)

    def _may_be_on_its_way(self, clues: Clues) -> bool:
        """Say whether asking again helps: not for a prompt with example answers, which was never found before."""
        return self._peers and self._lacks_parent(clues) and clues.chain[0].key not in self._missed

    def is_example(self, clues: Clues) -> bool:
        """Say whether the answers in a request are examples: the same ones stood in requests before, and were no
        answers of ours. A conversation whose parent is lost brings each answer once.
        """
        return bool(clues.chain) and self._missed.get(clues.chain[0].key, 0) > EXAMPLE_AFTER

    def _remember_miss(self, clues: Clues) -> None:
        if self._lacks_parent(clues) and clues.failed is None:
            newest = clues.chain[0].key
            self._missed[newest] = self._missed.get(newest, 0) + 1
            if len(self._missed) > REMEMBERED_MISSES:
                self._missed.popitem(last=False)

    async def _ask(self, clues: Clues, keys: Sequence[str], deadline: float) -> bool:
        """Ask the store; False when it did not answer in time."""
        self.stats.lookups += 1
        try:
            found = await self._answer(clues, keys, deadline)
        except (TimeoutError, StoreError) as error:
            self.stats.unanswered += 1
            if self._answering:
                _log.warning("requests are placed without the store: %s", str(error) or "it gave no answer in time")
            self._answering = False
            return False
        self._answering = True
        self._take_over(clues, found)
        return True

    async def _answer(self, clues: Clues, keys: Sequence[str], deadline: float) -> _Found:
        """Return what the store knows. Raises StoreError, or TimeoutError when it was not there in time."""
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._threads, self._look_up, clues, keys)
        try:
            # What has come counts, though this worker may have been too busy to look before the time was over.
            await asyncio.wait((asked,), timeout=max(0.0, deadline - loop.time()))
            if asked.done():
                return asked.result()
        finally:
            asked.cancel()
        raise TimeoutError

    def _look_up(self, clues: Clues, keys: Sequence[str]) -> _Found:
        traffic = self._store.traffic
        links = tuple(traffic.find_links(keys))
        named = None
        if clues.name is not None and clues.named in keys:
            named = traffic.assignment(clues.app, clues.name)
        seen_at = named.started_at if named is not None else 0.0
        if named is not None and self._clock() - seen_at > IDLE_SECONDS:
            seen_at = max([seen_at, *(one.ended_at for one in traffic.trajectory(clues.app, named.trajectory))])
        return _Found(links, named, seen_at)

    def _take_over(self, clues: Clues, found: _Found) -> None:
        self.stats.misses += not found.links and found.named is None
        nodes: dict[str, Node] = {}
        for one in found.links:
            fresh = Node(one.link.exchange, one.assignment, one.link.created_at, one.taken, one.link.system)
            self._cache.add(one.link.key, nodes.setdefault(one.link.exchange, fresh))
        if found.named is not None and clues.named is not None:
            self._cache.add(clues.named, Node("", found.named, found.seen_at))
