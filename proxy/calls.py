"""The values that the stations of the live path hand on: what a request is, and what it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, ParamSpec, TypeVar

from proxy.auth import Identity
from proxy.linking import Evidence, Placement
from proxy.routing import Route
from tfgrpo.dialects import Dialect
from tfgrpo.types import EMPTY_VERSION, Arm, Request

LARGE: Final = 256 * 1024
"""Bodies above this many bytes are read in a thread: it would hold up every other request for milliseconds."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request, once it is known whose it is and where it goes. `body` None: it is streamed and never held."""

    id: str
    identity: Identity
    method: str
    path: str
    route: Route
    model: str | None = None
    dialect: Dialect | None = None
    request: Request | None = None
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Given:
    """What a request got: its place, and the body to send. `injected` is `NAME@VERSION`, or `none`."""

    evidence: Evidence | None = None
    placement: Placement | None = None
    body: bytes | None = field(default=None, repr=False)
    injected: str = "none"
    arm: Arm = "none"
    version: int = EMPTY_VERSION


async def off_loop(size: int, work: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """Do work on a body of `size` bytes: at once when that is quick, in a thread when it is not."""
    if size <= LARGE:
        return work(*arguments, **named)
    return await asyncio.to_thread(work, *arguments, **named)
