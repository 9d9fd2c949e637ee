"""What is kept of an exchange while it runs: bounded copies of its bodies, times, how it ended.

It is written by the relay as things happen and read once, at the end, by whoever records. It neither sends nor stores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tfgrpo.types import Bodies, Outcome

FAILED = 400
"""The first status that is no success."""


@dataclass(slots=True)
class Copy:
    """The first `limit` bytes of a body."""

    limit: int
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, piece: bytes) -> None:
        """Take what still fits."""
        room = self.limit - self.size
        self.size += len(piece)
        if room > 0:
            self.pieces.append(piece if len(piece) <= room else piece[:room])

    @property
    def cut(self) -> bool:
        """Whether some of it was left out."""
        return self.size > self.limit

    def joined(self) -> bytes:
        """The bytes that were kept."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)


class Transcript:
    """One exchange as it happens. `limit` bounds the copy of each body."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.request = Copy(limit)
        self.response = Copy(limit)
        self.request_encoding = ""
        self.response_encoding = ""
        self.response_type = ""
        self.started_at = clock()
        self.first_byte_at: float | None = None
        self.ended_at = self.started_at
        self.status: int | None = None
        self.ended: Outcome | None = None
        self.notes: list[str] = []

    def answered(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Note the head of an answer, the upstream's or one of ours."""
        fields = dict(headers)
        self.status = status
        self.response_type = fields.get(b"content-type", b"").decode("latin-1")
        self.response_encoding = fields.get(b"content-encoding", b"").decode("latin-1")

    def received(self, piece: bytes) -> None:
        """Note a piece of the upstream's answer."""
        if self.first_byte_at is None:
            self.first_byte_at = self._clock()
        self.response.add(piece)

    def end(self, outcome: Outcome | None = None, note: str = "") -> None:
        """Note how it ended; without an outcome, the status decides. The first end counts."""
        if note:
            self.notes.append(note)
        if self.ended is None:
            self.ended_at = self._clock()
            failed = self.status is None or self.status >= FAILED
            self.ended = outcome or ("failed" if failed else "complete")

    @property
    def truncated(self) -> bool:
        """Whether a body was too long to be kept."""
        return self.request.cut or self.response.cut

    def bodies(self) -> Bodies:
        """The copies, as they are recorded."""
        return Bodies(
            request=self.request.joined(),
            response=self.response.joined(),
            request_encoding=self.request_encoding,
            response_encoding=self.response_encoding,
            response_type=self.response_type,
        )
