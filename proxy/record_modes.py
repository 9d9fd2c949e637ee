"""How much of an exchange is recorded: what its app is configured to, and what a request may lower it to. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from proxy.errors import ProxyError

RecordMode: TypeAlias = Literal["off", "metadata", "full"]
"""Nothing; all but the bodies; everything."""

HEADER: Final = b"x-tfgrpo-record"
_MODES: Final[tuple[RecordMode, ...]] = ("off", "metadata", "full")

# YAML reads a bare `off` as false.
Mode = Annotated[RecordMode, BeforeValidator(lambda value: "off" if value is False else value)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def lowered(allowed: RecordMode, asked: bytes | None) -> RecordMode:
    """Return what is recorded of a request whose header says `asked`: never more than its app allows.

    Of several values, with commas between them as a header given several times is read, the least counts.

    Raises:
        ProxyError: 400, the header says something else.
    """
    if asked is None:
        return allowed
    texts: list[Any] = [one.strip() for one in asked.decode("latin-1").split(",")]
    if any(text not in _MODES for text in texts):
        raise ProxyError(
            400,
            "x-tfgrpo-record takes off, metadata or full",
            code="invalid_value",
            param=HEADER.decode(),
        )
    modes: list[RecordMode] = texts
    return min(allowed, *modes, key=_MODES.index)
