"""What the live path leaves behind: a queue bounded in bytes and one thread that writes it to the store.

Putting something in never waits and never fails: what does not fit is dropped, counted and logged. Links and
assignments, which the next turn of a conversation looks for, are written within milliseconds and ahead of records;
records go in batches. A batch that the store does not take goes to disk (`spill`); where that is not to be had, it is
tried again for as long as it takes, while the queue fills. It knows nothing of HTTP, and does not look into bodies.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from proxy.memory import give_back
from proxy.spill import Spill, rows
from tfgrpo.errors import StoreError
from tfgrpo.store import Batch, Store
from tfgrpo.types import Assignment, Bodies, Exchange, Link

BATCH_BYTES = 1 << 20
BATCH_SECONDS = 0.05
LINK_SECONDS = 0.01
"""How long the writer lets links gather: half the cost of writing each at once, and well below a client's next turn."""

BATCH_LINKS = 4096
RECORD_BYTES = 1024
"""What a record weighs beside its bodies."""

LINK_BYTES = 256
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0
LOG_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Taken(msgspec.Struct, frozen=True):
    """`child` continues the exchange `parent`."""

    parent: str
    child: str


@dataclass(frozen=True, slots=True)
class Stats:
    """What the recorder has done. `failing`: the last write failed and is being tried again."""

    queued: int
    queued_bytes: int
    written: int
    dropped: int
    failing: bool


class _Record(msgspec.Struct, frozen=True):
    exchange: Exchange
    bodies: Bodies
    size: int


class Recorder:
    """Queues records and links, and writes them from a thread of its own.

    `queue_bytes` bounds all that waits and all that is lent to copies in flight, `body_bytes` what is kept of one body.
    `peers`: other workers read the links, so they are written sooner than records. `spill`: where a batch goes that the
    store does not take; without it, or when it is full, the batch waits in memory.
    """

    def __init__(
        self,
        store: Store,
        *,
        queue_bytes: int = 64 << 20,
        body_bytes: int = 8 << 20,
        peers: bool = False,
        spill: Spill | None = None,
    ) -> None:
        self._store = store
        self._spill = spill
        self._queue_bytes = queue_bytes
        self._body_bytes = body_bytes
        self._link_seconds = LINK_SECONDS if peers else BATCH_SECONDS
        # A plain lock, held for moments and never twice: taking it by way of the condition costs three times as much.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._records: deque[_Record] = deque()
        self._links: deque[Assignment | Link | Taken] = deque()
        self._writing: tuple[_Record, ...] = ()
        self._size = self._waiting = 0
        self._due = float("inf")
        self._written = self._dropped = self._logged_drops = 0
        self._logged_at = float("-inf")
        self._failing = self._swollen = False
        self._give_up_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Start the writer."""
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> int:
        """Write what waits, for at most `timeout` seconds, and return how many records were left unwritten."""
        with self._lock:
            self._give_up_at = time.monotonic() + timeout
            self._changed.notify()
        self._thread.join(timeout)
        with self._lock:
            left = len(self._records) + len(self._writing)
        if left:
            _log.error("%d exchanges were not recorded: the store did not take them in %g s", left, timeout)
        return left

    def put(self, exchange: Exchange, bodies: Bodies) -> None:
        """Queue the record of an exchange. Never waits, never raises; a full queue drops it and counts that."""
        exchange, bodies = self._cut(exchange, bodies)
        size = RECORD_BYTES + len(bodies.request) + len(bodies.response)
        with self._lock:
            if not self._fits(size):
                return
            self._records.append(_Record(exchange, bodies, size))
            self._waiting += size
            self._wake(0.0 if self._waiting >= BATCH_BYTES else BATCH_SECONDS)

    def put_link(self, *rows: Assignment | Link | Taken) -> None:
        """Queue what a later request is placed by, ahead of records. Never waits, never raises."""
        if not rows:
            return
        with self._lock:
            for row in rows:
                if self._fits(LINK_BYTES):
                    self._links.append(row)
            self._wake(self._link_seconds)

    def lend(self, size: int) -> bool:
        """Count `size` bytes of copies that are still being made, if there is room: they are to be queued here."""
        with self._lock:
            if self._size + size > self._queue_bytes:
                return False
            self._size += size
            return True

    def take_back(self, size: int) -> None:
        """Count lent bytes no more."""
        with self._lock:
            self._size -= size

    def unwritten(self) -> tuple[tuple[Exchange, Bodies], ...]:
        """Return the records that are not in the store yet, the oldest first."""
        with self._lock:
            return tuple((record.exchange, record.bodies) for record in (*self._writing, *self._records))

    @property
    def stats(self) -> Stats:
        """How full the queue is, and what became of what was put in."""
        with self._lock:
            queued = len(self._records) + len(self._writing)
            return Stats(queued, self._size, self._written, self._dropped, self._failing)

    def _cut(self, exchange: Exchange, bodies: Bodies) -> tuple[Exchange, Bodies]:
        limit = self._body_bytes
        if len(bodies.request) <= limit and len(bodies.response) <= limit:
            return exchange, bodies
        kept = replace(bodies, request=bodies.request[:limit], response=bodies.response[:limit])
        return replace(exchange, truncated=True), kept

    def _fits(self, size: int) -> bool:
        if self._give_up_at is None and self._size + size <= self._queue_bytes:
            self._size += size
            return True
        self._dropped += 1
        now = time.monotonic()
        if now - self._logged_at >= LOG_SECONDS:
            count = self._dropped - self._logged_drops
            self._logged_at, self._logged_drops = now, self._dropped
            _log.error("the recording queue is full (%d bytes): %d dropped", self._queue_bytes, count)
        return False

    def _wake(self, within: float) -> None:
        """Have the writer act `within` seconds. It is only woken when it would sleep longer than that."""
        due = time.monotonic() + within
        if due < self._due:
            self._due = due
            self._changed.notify()

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            if not self._write(batch):
                return
            if self._swollen and not self._records:
                # Megabytes that waited for the store are free again, and would stay with this process.
                self._swollen = False
                give_back()

    def _next(self) -> Batch | None:
        """Wait until something is due and return it; None when stopping and nothing is left or no time is."""
        with self._lock:
            while True:
                while self._give_up_at is None and (left := self._due - time.monotonic()) > 0:
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))
                if self._give_up_at is not None and time.monotonic() >= self._give_up_at:
                    return None
                self._swollen |= self._size > self._queue_bytes // 4
                links = [self._links.popleft() for _ in range(min(len(self._links), BATCH_LINKS))]
                self._writing = tuple(self._take_records())
                more = bool(self._links or self._records)
                self._due = time.monotonic() if more else float("inf")
                if links or self._writing:
                    return _batch(links, self._writing)
                if self._give_up_at is not None:
                    return None

    def _take_records(self) -> Iterator[_Record]:
        size = 0
        while self._records and (size == 0 or size + self._records[0].size <= BATCH_BYTES):
            record = self._records.popleft()
            size += record.size
            self._waiting -= record.size
            yield record

    def _write(self, batch: Batch) -> bool:
        """Write the batch, however often that takes; False when the time to stop ran out first."""
        pause = FIRST_PAUSE
        while True:
            try:
                if self._spill is not None and self._spill.away and self._spill.keep(batch):
                    self._done(batch, written=False)
                    return True
                self._store.traffic.add(batch)
            except StoreError as error:
                if self._spill is not None and self._spill.keep(batch):
                    _log.error("records go to disk until the store takes them: %s", error)
                    self._done(batch, written=False)
                    return True
                if not self._wait_to_retry(pause, error):
                    return False
                pause = min(2 * pause, LONGEST_PAUSE)
            except Exception:  # noqa: BLE001 - the outer edge of this thread: one row must not take the others with it
                _log.exception("a batch could not be stored; its rows are written one by one")
                return self._write_each(batch)
            else:
                self._done(batch)
                return True

    def _write_each(self, batch: Batch) -> bool:
        alone = rows(batch)
        if len(alone) > 1:
            return all(self._write(row) for row in alone)
        with self._lock:
            self._dropped += 1
        self._done(batch, written=False)
        return True

    def _wait_to_retry(self, pause: float, error: StoreError) -> bool:
        with self._lock:
            if not self._failing:
                _log.error("recording waits for the store: %s", error)
            self._failing = True
            until = time.monotonic() + pause
            while (left := min(until, self._give_up_at or until) - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._give_up_at is None or time.monotonic() < self._give_up_at

    def _done(self, batch: Batch, *, written: bool = True) -> None:
        ids = {exchange.id for exchange, _ in batch.exchanges}
        links = len(batch.assignments) + len(batch.links) + len(batch.taken)
        with self._lock:
            if self._failing:
                _log.warning("the store takes records again")
            self._failing = False
            self._written += len(ids) if written else 0
            self._size -= links * LINK_BYTES + sum(r.size for r in self._writing if r.exchange.id in ids)
            self._writing = tuple(r for r in self._writing if r.exchange.id not in ids)


def _batch(links: Iterable[Assignment | Link | Taken], records: Iterable[_Record]) -> Batch:
    rows = list(links)
    return Batch(
        exchanges=tuple((record.exchange, record.bodies) for record in records),
        assignments=tuple(row for row in rows if isinstance(row, Assignment)),
        links=tuple(row for row in rows if isinstance(row, Link)),
        taken=tuple((row.parent, row.child) for row in rows if isinstance(row, Taken)),
    )
