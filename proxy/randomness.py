"""Random bytes from the operating system, fetched ahead.

Each fetch is a system call that lets go of the interpreter: with the recorder's thread waiting for it, that costs the
live path more than the whole rest of making an id.
"""

from __future__ import annotations

import os

AHEAD = 4096


class RandomBytes:
    """A supply of random bytes; no byte is given twice. Not for use by several threads, nor across a fork."""

    def __init__(self) -> None:
        self._supply = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return `count` fresh random bytes, at most 4096."""
        if self._at + count > len(self._supply):
            self._supply = os.urandom(AHEAD)
            self._at = 0
        self._at += count
        return self._supply[self._at - count : self._at]
