"""Where records go while the store takes none: a file on this machine's disk, replayed in order when it is back.

Each worker appends to a file of its own and holds a lock on it. A file whose lock is free belongs to a worker that
died: whoever takes the lock replays it, and nobody else. A file is a row of frames (length, CRC-32, a batch as
MessagePack); a torn last frame is what a kill leaves, and ends the file. Rows that the store knows already change
nothing there, so a replay that was cut is begun again. It holds what the store gets and nothing more, no credentials.

The thread that replays is also the one that finds out that the store is back: until then the recorder does not ask.
Newer rows do not wait for older ones, for the next turn of a conversation may need them at once.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from tfgrpo.errors import StoreError
from tfgrpo.store import Batch, Store

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 2.0
SUFFIX: Final = ".spill"

_HEAD: Final = struct.Struct(">II")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Batch).decode
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SpillStats:
    """`waiting_bytes` on disk; records `kept` there, `replayed` into the store, and `lost`: damaged, or not taken."""

    away: bool
    waiting_bytes: int
    kept: int
    replayed: int
    lost: int


class _File:
    """One file of frames, locked by this process. `end` is where its last whole frame ends, `place` what is read."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.end = os.fstat(descriptor).st_size
        self.place = 0

    @classmethod
    def fresh(cls, folder: Path) -> _File:
        """Make a file of this worker's own; OSError when it cannot be."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(path, descriptor)

    @classmethod
    def adopted(cls, path: Path) -> _File | None:
        """Take over the file of a worker that died; None when its worker lives, or another took it over."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError:
            return None
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been replayed and removed between opening and locking.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return cls(path, descriptor)
        os.close(descriptor)
        return None

    def append(self, payload: bytes) -> None:
        """Add a frame, whole or not at all; OSError when the disk does not take it."""
        frame = memoryview(_HEAD.pack(len(payload), crc32(payload)) + payload)
        done = 0
        try:
            while done < len(frame):
                done += os.write(self.descriptor, frame[done:])
        except OSError:
            os.ftruncate(self.descriptor, self.end)
            raise
        self.end += done

    def next(self) -> bytes | None:
        """Return the payload at `place`; None where there is no whole one."""
        head = os.pread(self.descriptor, _HEAD.size, self.place)
        if len(head) < _HEAD.size:
            return None
        length, checksum = _HEAD.unpack(head)
        if self.place + _HEAD.size + length > self.end:
            return None
        payload = os.pread(self.descriptor, length, self.place + _HEAD.size)
        return payload if crc32(payload) == checksum else None

    def pass_over(self, payload: bytes) -> None:
        """Go on behind a payload that was read."""
        self.place += _HEAD.size + len(payload)

    def close(self, *, remove: bool) -> None:
        """Let go of the file, and of what is in it where that is done with."""
        if remove:
            with suppress(OSError):
                self.path.unlink()
        os.close(self.descriptor)


class Spill:
    """Keeps batches on disk, `limit` bytes at most, and replays them. Start it, stop it; one thread keeps."""

    def __init__(self, store: Store, folder: Path, *, limit: int) -> None:
        self._store = store
        self._folder = folder
        self._limit = limit
        self._changed = threading.Condition()
        self._own: _File | None = None
        self._left_behind: list[_File] = []
        self._others = 0
        self._away = self._stopping = self._refused = False
        self._kept = self._replayed = self._lost = 0
        self._thread = threading.Thread(target=self._run, name="spill", daemon=True)

    def start(self) -> None:
        """Take over what dead workers left, and replay."""
        self._left_behind = [file for path in self._paths() if (file := _File.adopted(path)) is not None]
        for file in self._left_behind:
            _log.warning("records of a worker that ended wait in %s (%d bytes): replaying them", file.path, file.end)
        self._others = sum(path.stat().st_size for path in self._paths())
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """End the replay. What waits stays on disk for the next start."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(timeout)
        if self._thread.is_alive():
            return
        for file in (*self._left_behind, *([self._own] if self._own is not None else [])):
            file.close(remove=file.place >= file.end)

    @property
    def away(self) -> bool:
        """Whether the store took nothing when it was last asked: what comes now belongs here."""
        return self._away

    @property
    def stats(self) -> SpillStats:
        """What waits here, and what became of what did."""
        with self._changed:
            files = (*self._left_behind, *([self._own] if self._own is not None else []))
            waiting = sum(file.end - file.place for file in files)
            return SpillStats(self._away, waiting, self._kept, self._replayed, self._lost)

    def keep(self, batch: Batch) -> bool:
        """Keep a batch that the store does not take; False when the disk does not take it either, or the bound is
        reached: then it is the caller's still.
        """
        payload = _encode(batch)
        with self._changed:
            taken = self._append(payload)
            if taken:
                self._kept += len(batch.exchanges)
                self._away = True
                self._changed.notify()
        if not taken and not self._refused:
            _log.error("records wait in memory: %s takes no more (outage.spill_bytes: %d)", self._folder, self._limit)
        self._refused = not taken
        return taken

    def _paths(self) -> list[Path]:
        try:
            return sorted(self._folder.glob(f"*{SUFFIX}"), key=lambda path: (path.stat().st_mtime, path.name))
        except OSError:
            return []

    def _append(self, payload: bytes) -> bool:
        size = self._own.end if self._own is not None else 0
        if self._stopping or self._others + size + _HEAD.size + len(payload) > self._limit:
            return False
        try:
            if self._own is None:
                self._own = _File.fresh(self._folder)
            self._own.append(payload)
        except OSError:
            return False
        return True

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while (file := self._oldest()) is not None:
            if self._replay_next(file):
                pause = FIRST_PAUSE
                continue
            with self._changed:
                self._away = True
                self._changed.wait_for(lambda: self._stopping, pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _oldest(self) -> _File | None:
        """Return the file to replay from, once there is one; None when stopping."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._left_behind or self._own is not None)
            if self._stopping:
                return None
            return self._left_behind[0] if self._left_behind else self._own

    def _replay_next(self, file: _File) -> bool:
        """Replay one frame of a file, or end the file; False when the store did not take it."""
        with self._changed:
            payload = file.next()
            if payload is None:
                self._end(file)
                return True
        try:
            self._add(payload)
        except StoreError:
            return False
        with self._changed:
            file.pass_over(payload)
            if self._away:
                self._away = False
                _log.warning("the store takes records again; replaying those that wait on disk")
        return True

    def _add(self, payload: bytes) -> None:
        try:
            batch = _decode(payload)
        except msgspec.MsgspecError as error:
            self._lose(f"a batch on disk is not of this version: {error}")
            return
        try:
            self._store.traffic.add(batch)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - the outer edge of this thread: one row must not hold up the others
            self._add_each(batch)
        with self._changed:
            self._replayed += len(batch.exchanges)

    def _add_each(self, batch: Batch) -> None:
        for row in rows(batch):
            try:
                self._store.traffic.add(row)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - as above
                self._lose(f"a row on disk could not be stored: {error}")

    def _lose(self, why: str) -> None:
        with self._changed:
            self._lost += 1
        _log.error("%s", why)

    def _end(self, file: _File) -> None:
        if file.place < file.end:
            self._lost += 1
            _log.error("the last %d bytes of %s are no whole record", file.end - file.place, file.path)
        file.close(remove=True)
        if file is self._own:
            self._own = None
            self._away = False
        else:
            self._left_behind.remove(file)
            self._others = max(0, self._others - file.end)


def rows(batch: Batch) -> list[Batch]:
    """Return the rows of a batch, each alone, in the order in which they are written."""
    return [
        *(Batch(assignments=(row,)) for row in batch.assignments),
        *(Batch(links=(row,)) for row in batch.links),
        *(Batch(exchanges=(row,)) for row in batch.exchanges),
        *(Batch(taken=(row,)) for row in batch.taken),
    ]
