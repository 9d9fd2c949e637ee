"""Lines to standard error that nobody waits for: a bounded queue, and one thread that writes.

Standard error may be a pipe that nobody reads, and writing to it then takes forever: that must hold up neither a
request nor the end of the program. What does not fit in the queue is dropped and counted. It knows nothing of what the
lines say.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from typing import Final

FILE: Final = 2
MOST_LINES: Final = 10_000
WHOLE: Final = 4096
"""A pipe takes so many bytes in one piece (PIPE_BUF of Linux): lines of several workers do not mix."""

PATIENCE: Final = 2.0
"""Seconds that the end waits for standard error to take what is left."""


class Lines:
    """Writes lines to a file, by its number. Its thread starts with the first line and never holds up the end."""

    def __init__(self, file: int = FILE, most: int = MOST_LINES) -> None:
        self._file = file
        self._most = most
        self._waiting: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._writing = False
        self.dropped = 0
        """Lines that were lost because standard error took none."""

    def put(self, text: str) -> None:
        """Have a line written, as soon as that can be done. Never waits, never fails."""
        line = f"{text}\n".encode(errors="backslashreplace")
        with self._changed:
            if len(self._waiting) >= self._most:
                self.dropped += 1
                return
            self._waiting.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="standard error", daemon=True)
                self._thread.start()
            self._changed.notify()

    def flush(self, timeout: float = PATIENCE) -> bool:
        """Wait until all is written, for at most `timeout` seconds; whether it was."""
        until = time.monotonic() + timeout
        with self._changed:
            while self._waiting or self._writing:
                if (left := until - time.monotonic()) <= 0:
                    return False
                self._changed.wait(left)
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                while not self._waiting:
                    self._changed.wait()
                piece = self._next_piece()
                self._writing = True
            self._write(piece)

    def _next_piece(self) -> bytes:
        """As many whole lines as a pipe takes in one piece, and at least one."""
        lines = [self._waiting.popleft()]
        size = len(lines[0])
        while self._waiting and size + len(self._waiting[0]) <= WHOLE:
            size += len(self._waiting[0])
            lines.append(self._waiting.popleft())
        return b"".join(lines)

    def _write(self, piece: bytes) -> None:
        try:
            while piece:
                piece = piece[os.write(self._file, piece) :]
        except OSError:
            # Closed, or its reader is gone: there is nobody left to tell.
            with self._changed:
                self.dropped += piece.count(b"\n")


class Handler(logging.Handler):
    """What `logging` writes through, in place of a StreamHandler."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = Lines()

    def emit(self, record: logging.LogRecord) -> None:
        """Have a record written."""
        try:
            self.lines.put(self.format(record))
        except Exception:  # noqa: BLE001 - logging's own rule: a record that cannot be formatted fails nobody
            self.lines.put(f"a line of the log could not be formatted ({record.name}, line {record.lineno})")

    def close(self) -> None:
        """Write what is left. `logging` calls it when the program ends."""
        self.lines.flush()
        super().close()


def dropped_from_log() -> int:
    """How many lines of this process' log were lost."""
    return sum(one.lines.dropped for one in logging.getLogger().handlers if isinstance(one, Handler))
