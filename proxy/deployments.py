"""Which version of a set live requests get, and the text that is injected, held in memory and swapped whole.

Every worker asks the store several times a second whether something changed, so that a swap reaches all of them
within one. While the store does not answer, the last known state stays in force; a worker that begins then takes it
from the copy on this machine's disk. What was withdrawn of a version is in none of its blocks, deployed or not. It
decides nothing: arms are drawn elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from proxy.local_copy import LocalCopy
from tfgrpo import library
from tfgrpo.errors import NotFound, StoreError
from tfgrpo.library import Limits
from tfgrpo.safety import outgoing
from tfgrpo.selection import Selector, first_request, part
from tfgrpo.store import Store
from tfgrpo.types import EMPTY_VERSION, Deployment, Library, Request
from tfgrpo.withdrawal import Said, remaining

OTHER_BLOCKS = 256
"""How many blocks of versions that are not deployed (pinned ones, older ones of long conversations) are kept."""

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """One consistent view. `blocks` holds those of the deployed versions by (set, version)."""

    stamp: int = -1
    deployments: Mapping[str, Deployment] = field(default_factory=dict)
    blocks: Mapping[tuple[str, int], Block] = field(default_factory=dict)
    rollbacks: Mapping[str, int] = field(default_factory=dict)
    withdrawn: Mapping[str, frozenset[Said]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """A version as it is injected: `whole`, or for a library over its budget the entries that `selector` chooses."""

    whole: str
    library: Library = field(default_factory=Library)
    selector: Selector | None = None

    def text(self, set_name: str, version: int, chosen: str | None) -> str:
        """Return what is injected for a trajectory that gets these entries (ids with spaces between; None: all)."""
        if chosen is None:
            return self.whole
        return library.render(part(self.library, set(chosen.split())), name=set_name, version=version)


_NOTHING = Block("")


class _Blocks:
    """Makes blocks, when a version is loaded.

    An entry that was withdrawn, or that holds a secret or a personal datum, is left out of them.
    """

    def __init__(self, limits: Limits | None, ours: tuple[str, ...]) -> None:
        self._limits = limits
        self._ours = ours
        self.left_out: dict[tuple[str, int], int] = {}

    def of(self, store: Store, set_name: str, version: int, withdrawn: Collection[Said]) -> Block:
        """Return the block of a stored version, without what was withdrawn of it; NotFound when there is none."""
        found, gone = remaining(store.sets.version(set_name, version).library, withdrawn)
        if gone:
            named = ", ".join(sorted(gone))
            _log.warning("%s@%d: entries %s are not injected: they were withdrawn", set_name, version, named)
        block = self.rendered(found, set_name, version)
        if gone:
            self.left_out[set_name, version] = self.left_out.get((set_name, version), 0) + len(gone)
        return block

    def rendered(self, found: Library, set_name: str, version: int) -> Block:
        """Return the block of a library."""
        kept, left_out = outgoing.injected(found, self._ours)
        for entry, kind in left_out:
            said = "it holds what looks like a secret or a personal datum"
            _log.warning("%s@%d: entry %s is not injected: %s (%s)", set_name, version, entry, said, kind)
        self.left_out.pop((set_name, version), None)
        if left_out:
            self.left_out[set_name, version] = len(left_out)
        whole = library.render(kept, name=set_name, version=version)
        fits = self._limits is None or library.fits(kept, self._limits)
        return Block(whole, kept, None if self._limits is None or fits else Selector(kept, self._limits))


class _Copy(msgspec.Struct):
    """A snapshot as it is kept on disk. A copy of before withdrawals were kept has none."""

    deployments: list[Deployment]
    libraries: list[tuple[tuple[str, int], Library]]
    rollbacks: Mapping[str, int]
    withdrawn: Mapping[str, frozenset[Said]] = {}


class Deployments:
    """The current deployments of all sets. Reading never blocks and never fails.

    The store is polled each `interval` seconds; `peers`: other workers poll it too.
    `limits`: a trajectory gets a choice within them of a library that is larger; None: it gets every library whole.
    `copy`: where each change is kept. `ours`: values of our configuration, which no block may hold.
    """

    def __init__(
        self,
        store: Store,
        *,
        interval: float = 0.25,
        peers: bool = False,
        limits: Limits | None = None,
        copy: LocalCopy | None = None,
        ours: tuple[str, ...] = (),
    ) -> None:
        self._store = store
        self._copy = copy
        self._interval = interval
        self._peers = peers
        self._blocks = _Blocks(limits, ours)
        self._snapshot = _Snapshot()
        self._others: OrderedDict[tuple[str, int], Block] = OrderedDict()
        self._answering = True
        self._turn = asyncio.Lock()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="deployments")
        self._poller: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read the deployments once, then keep them up to date."""
        await self.refresh()
        if not self._answering and (copy := self._copy) is not None:
            self._snapshot = await self._in_thread(lambda: _copied(copy, self._blocks))
        self._poller = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """Stop reading. What is known stays readable."""
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
            self._poller = None
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def refresh(self) -> None:
        """Take over what the store says now. Changes made before the call are in force after it."""
        async with self._turn:
            try:
                found = await self._in_thread(self._load)
            except StoreError as error:
                if self._answering:
                    _log.error("deployments stay as they were last known: %s", error)
                self._answering = False
            else:
                if found.withdrawn != self._snapshot.withdrawn:
                    self._others.clear()
                self._snapshot = found
                self._answering = True

    @property
    def answering(self) -> bool:
        """Whether the store answered when it was last asked."""
        return self._answering

    @property
    def left_out(self) -> int:
        """How many entries of the versions loaded so far are not injected: withdrawn ones, and for what they hold."""
        return sum(self._blocks.left_out.values())

    def current(self, set_name: str) -> Deployment | None:
        """Return the deployment of a set; None when it has none."""
        return self._snapshot.deployments.get(set_name)

    def all(self) -> list[Deployment]:
        """Return the deployments of all sets that have one."""
        return list(self._snapshot.deployments.values())

    def newest_rollback(self, set_name: str) -> int:
        """Return the revision of the newest rollback of a set, 0 if there was none."""
        return self._snapshot.rollbacks.get(set_name, 0)

    def block(self, set_name: str, version: int) -> Block | None:
        """Return the block of a version: "" for an empty library, None when memory does not know it."""
        if version == EMPTY_VERSION:
            return _NOTHING
        key = (set_name, version)
        known = self._snapshot.blocks.get(key)
        return known if known is not None else self._others.get(key)

    def choose(self, set_name: str, version: int, request: Request | None) -> str | None:
        """Return the ids of the entries for a trajectory that begins with `request`, with spaces between; None: all."""
        block = self.block(set_name, version)
        if block is None or block.selector is None:
            return None
        return " ".join(block.selector.ids(first_request(request.messages if request is not None else ())))

    async def find_block(self, set_name: str, version: int) -> Block | None:
        """Return the block, asking the store when memory does not know it; None: no such version.

        Raises:
            StoreError: The store was asked and did not answer.
        """
        known = self.block(set_name, version)
        if known is not None:
            return known
        withdrawn = self._snapshot.withdrawn
        gone = withdrawn.get(set_name, frozenset())
        try:
            found = await self._in_thread(lambda: self._blocks.of(self._store, set_name, version, gone))
        except NotFound:
            return None
        if self._snapshot.withdrawn is not withdrawn and self._snapshot.withdrawn != withdrawn:
            # More was withdrawn while it was read: the next request reads it anew.
            return await self.find_block(set_name, version)
        self._others[set_name, version] = found
        if len(self._others) > OTHER_BLOCKS:
            self._others.popitem(last=False)
        return found

    async def reach_all(self) -> None:
        """Read the deployments now, and return when the other workers have had the time to do so as well."""
        await self.refresh()
        if self._peers:
            # Twice: a worker that polled just before the change waits one interval, and reads for a part of another.
            await asyncio.sleep(2 * self._interval)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self.refresh()

    def _load(self) -> _Snapshot:
        found = _loaded(self._store, self._snapshot, self._blocks)
        if self._copy is not None and found is not self._snapshot:
            libraries = [(key, block.library) for key, block in found.blocks.items()]
            self._copy.keep(_Copy(list(found.deployments.values()), libraries, found.rollbacks, found.withdrawn))
        return found

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _loaded(store: Store, known: _Snapshot, made: _Blocks) -> _Snapshot:
    """Return what the store says now, or `known` itself when nothing changed since."""
    stamp = store.sets.stamp()
    if stamp == known.stamp:
        return known
    deployments = {one.set: one for one in store.sets.deployments()}
    withdrawn = store.withdrawals.entries()
    nothing = frozenset[Said]()
    deployed = {(one.set, version) for one in deployments.values() for version in (one.live, one.candidate) if version}
    blocks = {}
    for name, version in deployed:
        gone = withdrawn.get(name, nothing)
        same = (name, version) in known.blocks and known.withdrawn.get(name, nothing) == gone
        blocks[name, version] = known.blocks[name, version] if same else made.of(store, name, version, gone)
    rollbacks = {name: store.sets.newest_rollback(name) for name in deployments}
    return _Snapshot(stamp, deployments, blocks, rollbacks, withdrawn)


def _copied(copy: LocalCopy, made: _Blocks) -> _Snapshot:
    """Return what is on disk, to be replaced by whatever the store says."""
    found = copy.deployments(_Copy)
    if found is None:
        return _Snapshot()
    blocks = {}
    for key, one in found.libraries:
        left, _ = remaining(one, found.withdrawn.get(key[0], ()))
        blocks[key] = made.rendered(left, *key)
    return _Snapshot(-1, {one.set: one for one in found.deployments}, blocks, found.rollbacks, found.withdrawn)
