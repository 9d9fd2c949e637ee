"""One thread that makes labels durable: all that wait share one transaction, and so one sync of the disk.

Labels that belong together are stored together or not at all. It does not know where labels come from.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from proxy.errors import AGAIN_SOON, ProxyError
from tfgrpo.errors import Conflict
from tfgrpo.store import Store
from tfgrpo.types import Label

MOST_AT_ONCE = 256
"""Posts that one transaction takes."""

MOST_WAITING = 4096

Status = Literal["stored", "duplicate"]


@dataclass(frozen=True, slots=True)
class _Post:
    labels: tuple[Label, ...]
    answer: Future[list[Status]] = field(default_factory=Future)


class LabelWriter:
    """Stores labels. Start it, stop it; in between any number of tasks may add."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.observers: Sequence[Callable[[Label], None]] = ()
        """Who is told of each new label, once it is durable."""
        self._posts: queue.Queue[_Post | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="labels", daemon=True)

    def start(self) -> None:
        """Start the writer."""
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Store what waits, for at most `timeout` seconds. Nothing may be added afterwards."""
        self._posts.put(None)
        self._thread.join(timeout)

    async def add(self, labels: Sequence[Label]) -> list[Status]:
        """Store the labels durably, all or none, and say of each whether it is new.

        Raises:
            OtherContent: A feedback id is stored already with other content.
            StoreError: The store does not take them.
            ProxyError: 503, too many wait for it.
        """
        post = _Post(tuple(labels))
        try:
            self._posts.put_nowait(post)
        except queue.Full as error:
            said = "too many labels wait for the store; nothing was stored, send them again"
            raise ProxyError(503, said, code="too_many_labels", headers=AGAIN_SOON) from error
        statuses = await asyncio.wrap_future(post.answer)
        for observe in self.observers:
            for label, status in zip(post.labels, statuses, strict=True):
                if status == "stored":
                    observe(label)
        return statuses

    def _run(self) -> None:
        while posts := list(self._waiting()):
            running = [post for post in posts if post.answer.set_running_or_notify_cancel()]
            if running:
                self._store_together(running)

    def _waiting(self) -> Iterator[_Post]:
        """Yield the posts that wait now, at least one; none when there will be no more."""
        post = self._posts.get()
        for _ in range(MOST_AT_ONCE):
            if post is None:
                # Another round finds it again, and ends.
                self._posts.put(None)
                return
            yield post
            try:
                post = self._posts.get_nowait()
            except queue.Empty:
                return
        if post is not None:
            yield post

    def _store_together(self, posts: Sequence[_Post]) -> None:
        labels = [label for post in posts for label in post.labels]
        try:
            statuses = iter(self._store.labels.add(labels))
        except Exception as error:  # noqa: BLE001 - the outer edge of this thread: whoever waits must be answered
            if isinstance(error, Conflict) and len(posts) > 1:
                # One post with a conflict must not refuse the others, so each gets its own transaction.
                for post in posts:
                    self._store_together([post])
                return
            for post in posts:
                post.answer.set_exception(error)
        else:
            for post in posts:
                post.answer.set_result([next(statuses) for _ in post.labels])
