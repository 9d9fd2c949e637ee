"""The memo of finished model calls: a run that was interrupted goes on without paying twice.

It keeps text under text, in diskcache, and nothing else: values are never pickled nor unpickled, so that a file
somebody else wrote to cannot run code here. Nothing is evicted, because an entry is money. It does not know what a
call is; `llm.py` makes keys and values.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import diskcache

from tfgrpo.errors import StoreError

T = TypeVar("T")

_RAW: Final = 1
"""The mode under which diskcache keeps a value as it is, inside the database row."""


class NotTextError(ValueError):
    """A row holds something other than plain text: not written by us, or tampered with."""


class TextDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache ships no types
    """Stores `str` under `str` as plain database values. Whatever else a row may hold is refused, unread."""

    def put(self, key: Any) -> tuple[str, bool]:
        """Return the database key."""
        if not isinstance(key, str):
            raise NotTextError(f"a key must be text, not {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: bool) -> str:
        """Return the key that a row holds."""
        if not raw or not isinstance(key, str):
            raise NotTextError("a row of the memo has a key that is not text")
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, str]:
        """Return what the row is to hold: the text itself, of whatever length."""
        if read or not isinstance(value, str):
            raise NotTextError(f"the value of {key} must be text, not {type(value).__name__}")
        return 0, _RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> str:
        """Return the text of a row."""
        if mode != _RAW or filename or read or not isinstance(value, str):
            raise NotTextError("a row of the memo is not text")
        return value


class Memo:
    """Text by key, on disk. Its blocking calls run in one thread of its own, never on the event loop."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memo")
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._cache = self._thread.submit(
                partial(diskcache.Cache, str(directory), disk=TextDisk, eviction_policy="none")
            ).result()
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            self._thread.shutdown()
            raise StoreError(
                f"the memo in {directory} cannot be opened ({error}); set training.cache to a folder that can "
                "be written, or delete this one: its calls are then paid for again"
            ) from error

    async def get(self, key: str) -> str | None:
        """Return the text under `key`, None when there is none (or none that we can have written)."""

        def read() -> str | None:
            try:
                found = self._cache.get(key, retry=True)
            except NotTextError:
                return None
            return found if isinstance(found, str) else None

        return await self._run(read)

    async def put(self, key: str, text: str) -> None:
        """Keep `text` under `key`; returns once it is on disk."""
        await self._run(partial(self._cache.set, key, text, retry=True))

    async def drop(self, key: str) -> None:
        """Keep nothing under `key` any more."""
        await self._run(partial(self._cache.delete, key, retry=True))

    def close(self) -> None:
        """Close the files."""
        self._thread.submit(self._cache.close).result()
        self._thread.shutdown()

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"the memo in {self.directory} cannot be used ({error}); free some space, set training.cache, or "
                "delete the folder: its calls are then paid for again"
            ) from error
