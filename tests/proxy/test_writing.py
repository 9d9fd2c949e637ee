from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proxy.writing import Together

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Wire:
    """A transport that keeps what was sent, a list entry for each call."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.ended = ""

    def is_closing(self) -> bool:
        return bool(self.ended)

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def writelines(self, pieces: Any) -> None:
        self.sent.append(b"".join(pieces))

    def close(self) -> None:
        self.ended = "closed"

    def write_eof(self) -> None:
        self.ended = "half"


def together() -> tuple[Together, Wire]:
    wire = Wire()
    return Together(wire, asyncio.get_running_loop()), wire  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 10, 100_000])
async def test_a_head_goes_with_what_follows_at_once(size: int) -> None:
    transport, wire = together()
    for piece in (HEAD, b"x" * size, b"more"):
        transport.write(piece)
    assert wire.sent == [HEAD + b"x" * size, b"more"]


async def test_a_head_that_nothing_follows_goes_alone() -> None:
    transport, wire = together()
    transport.write(HEAD)
    await asyncio.sleep(0)
    transport.write(b"late")
    assert wire.sent == [HEAD, b"late"]


@pytest.mark.parametrize(("end", "ended"), [("close", "closed"), ("write_eof", "half")])
async def test_nothing_is_kept_at_the_end(end: str, ended: str) -> None:
    transport, wire = together()
    transport.write(HEAD)
    getattr(transport, end)()
    await asyncio.sleep(0)
    assert (wire.sent, wire.ended, transport.is_closing()) == ([HEAD], ended, True)
