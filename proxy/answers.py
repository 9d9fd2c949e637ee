"""An upstream's answer as the relay reads it, whichever client brought it. It knows no client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

Take: TypeAlias = Callable[[bytes], bool]
"""Takes a piece at once, or says that it cannot."""


class Answer(Protocol):
    """An answer whose head is there; its body is read once, piece by piece, and closed in any case.

    `take` may be given what comes while `read` waits, the last piece excepted; what it takes, `read` does not return.
    """

    take: Take | None

    @property
    def status(self) -> int:
        """The status, 200 to 599."""
        ...

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]:
        """All headers as they came, in their order."""
        ...

    @property
    def bodiless(self) -> bool:
        """Whether the status is one that never has a body."""
        ...

    @property
    def ended(self) -> bool:
        """Whether everything has been read, and nothing was cut."""
        ...

    async def read(self) -> bytes:
        """Return the next bytes as they came; b"" at the end.

        Raises:
            Broken: The upstream cut the answer, or was silent for too long.
        """
        ...

    def close(self) -> None:
        """Let go of what the answer holds."""
        ...
