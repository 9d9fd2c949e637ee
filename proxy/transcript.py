"""What is kept of an exchange while it runs: bounded copies of its bodies, times, how it ended.

It is written by the relay as things happen and read once, at the end, by whoever records. It neither sends nor stores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tfgrpo.types import Bodies, Outcome

FAILED = 400
"""The first status that is no success."""


FREE_BYTES: Final = 32 * 1024
"""What a copy may hold without asking: the bodies of most exchanges cost no count."""

LOAN_BYTES: Final = 64 * 1024


class Lender(Protocol):
    """Who bounds the copies of all exchanges together."""

    def lend(self, size: int) -> bool:
        """Whether `size` bytes more may be held."""

    def take_back(self, size: int) -> None:
        """Take back what was lent."""


class Trace(Protocol):
    """The spans of one exchange, where exchanges are traced."""

    def onward(self, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Begin the span of the upstream's work; return the headers as it shall see them."""


class Copy:
    """The first `limit` bytes of a body; fewer where the lender has no more to give."""

    __slots__ = ("_allowed", "_lender", "lent", "limit", "pieces", "size")

    def __init__(self, limit: int, lender: Lender | None = None) -> None:
        self.limit = limit
        self.pieces: list[bytes] = []
        self.size = 0
        self.lent = 0
        self._lender = lender
        self._allowed = min(limit, FREE_BYTES)

    def add(self, piece: bytes) -> None:
        """Take what still fits."""
        self.size += len(piece)
        if self.size <= self._allowed:
            self.pieces.append(piece)
        else:
            self._add_large(piece)

    def _add_large(self, piece: bytes) -> None:
        before = self.size - len(piece)
        if before > self.limit:
            return
        self._borrow(min(self.size, self.limit))
        self.pieces.append(piece[: max(0, self.limit - before)])

    def _borrow(self, wanted: int) -> None:
        """Have `wanted` bytes allowed, in large steps; when they are refused, the copy ends here."""
        missing = wanted - self._allowed
        if missing <= 0:
            return
        step = max(missing, min(LOAN_BYTES, self.limit - self._allowed))
        if self._lender is None or self._lender.lend(step):
            self.lent += step if self._lender is not None else 0
            self._allowed += step
        else:
            self.limit = self._allowed

    @property
    def cut(self) -> bool:
        """Whether some of it was left out."""
        return self.size > self.limit

    def joined(self) -> bytes:
        """The bytes that were kept."""
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)


class Transcript:
    """One exchange as it happens. `limit` bounds the copy of each body, `lender` those of all exchanges together."""

    def __init__(self, limit: int, lender: Lender | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lender = lender
        self.request = Copy(limit, lender)
        self.response = Copy(limit, lender)
        self.request_encoding = ""
        self.response_encoding = ""
        self.response_type = ""
        self.started_at = clock()
        self.sending_at: float | None = None
        self.first_byte_at: float | None = None
        self.ended_at = self.started_at
        self.status: int | None = None
        self.ended: Outcome | None = None
        self.notes: list[str] = []
        self.trace: Trace | None = None

    def answered(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Note the head of an answer, the upstream's or one of ours."""
        fields = dict(headers)
        self.status = status
        self.response_type = fields.get(b"content-type", b"").decode("latin-1")
        self.response_encoding = fields.get(b"content-encoding", b"").decode("latin-1")

    def sending(self) -> None:
        """Note that the request goes to its upstream now."""
        self.sending_at = self._clock()

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

    def release(self) -> None:
        """Give back what the copies were lent: they are let go, or counted elsewhere from now on."""
        lent = self.request.lent + self.response.lent
        if lent and self._lender is not None:
            self.request.lent = self.response.lent = 0
            self._lender.take_back(lent)

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
