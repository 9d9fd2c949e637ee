"""The values that the stations of the live path hand on: what a request is, and what it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import msgspec

from proxy.auth import Identity
from proxy.linking import Evidence, Placement
from proxy.record_modes import RecordMode
from proxy.routing import Route
from tfgrpo.dialects import Dialect
from tfgrpo.types import EMPTY_VERSION, Arm, Request

LARGE: Final = 1024 * 1024
"""Bodies above this many bytes are read in a thread: it would hold up every other request for milliseconds."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Call(msgspec.Struct, frozen=True):
    """A request, once it is known whose it is and where it goes. `body` None: it is streamed and never held."""

    id: str
    identity: Identity
    method: str
    path: str
    route: Route
    model: str | None = None
    dialect: Dialect | None = None
    request: Request | None = None
    body: bytes | None = None

    def __repr__(self) -> str:
        """Without what the client sent, which is nobody's to read in a log."""
        return f"Call({self.id}, {self.method} {self.path})"


class Given(msgspec.Struct, frozen=True):
    """What a request got: its place, and the body to send. `injected` is `NAME@VERSION`, or `none`.

    `bypassed`: it is relayed, and nothing else. `record` is how much of it is recorded, `record_share` the probability
    with which its bodies are.
    """

    evidence: Evidence | None = None
    placement: Placement | None = None
    body: bytes | None = None
    injected: str = "none"
    arm: Arm = "none"
    version: int = EMPTY_VERSION
    bypassed: bool = False
    record: RecordMode = "full"
    record_share: float = 1.0

    def __repr__(self) -> str:
        """Without the body, as in a call."""
        return f"Given({self.injected}, {self.arm})"


async def off_loop(size: int, work: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """Do work on a body of `size` bytes: at once when that is quick, in a thread when it is not."""
    if size <= LARGE:
        return work(*arguments, **named)
    return await asyncio.to_thread(work, *arguments, **named)
