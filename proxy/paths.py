"""What the path of a request says: which upstream's API it means, with which set and session, and what lies below.

Pure, over the raw path as it came in: nothing is decoded but to look for segments that would leave the prefix, since
`%2F` inside a segment is part of a name and must arrive as it is.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final
from urllib.parse import unquote

import msgspec

from proxy.errors import ProxyError
from proxy.settings import SET_NAME

ID: Final = re.compile(r"[!-~]{1,200}")
"""The grammar of ids that clients make up: of sessions, trajectories and groups."""

_MOST_DECODINGS: Final = 8
_DOTS: Final = (".", "..")


class Address(msgspec.Struct, frozen=True):
    """A path that is relayed. `below` is what follows the base, raw: `/chat/completions`."""

    below: str
    set_name: str | None = None
    session: str | None = None
    upstream: str | None = None

    @property
    def api(self) -> str | None:
        """Whose envelope an error takes; None: OpenAI's."""
        return "messages" if self.below.startswith("/messages") else None


def locate(path: str, upstreams: Container[str]) -> Address | None:
    """Return what a raw path addresses; None when it stands under no base: `[/set/NAME][/session/ID][/UPSTREAM]/v1`.

    Raises:
        ProxyError: 400, a segment would leave the prefix, or a name does not fit its grammar.
    """
    if path.startswith("/v1/") and _is_plain(path):
        return Address(path[3:])
    _refuse_climbing(path)
    set_name = session = upstream = None
    rest = path
    if rest.startswith("/set/"):
        set_name, rest = _first(rest[5:])
        if not SET_NAME.fullmatch(set_name):
            raise ProxyError(400, f"{set_name[:80]!r} is no name of an experience set", code="invalid_set")
    if rest.startswith("/session/"):
        raw, rest = _first(rest[9:])
        session = unquote(raw)
        if not ID.fullmatch(session):
            raise ProxyError(400, "a session id is 1 to 200 visible ASCII characters", code="invalid_session")
    if not _is_base(rest):
        upstream, rest = _first(rest[1:])
        if upstream not in upstreams or not _is_base(rest):
            return None
    return Address(rest[3:], set_name, session, upstream)


def _is_base(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")


def _first(path: str) -> tuple[str, str]:
    """Return the first segment, and the rest with its slash."""
    end = path.find("/")
    return (path, "") if end < 0 else (path[:end], path[end:])


def _is_plain(path: str) -> bool:
    return "%" not in path and "\\" not in path and "//" not in path and "/." not in path


def _refuse_climbing(path: str) -> None:
    if _is_plain(path):
        return
    segments = _decoded(path).replace("\\", "/").split("/")[1:]
    if any(segment in _DOTS for segment in segments) or "" in segments[:-1]:
        raise ProxyError(
            400,
            "the path holds a segment that is empty, '.' or '..'; send the path of the API as it is",
            code="invalid_path",
        )


def _decoded(path: str) -> str:
    """Decode until nothing changes: what the last server behind us might make of it."""
    for _ in range(_MOST_DECODINGS):
        decoded = unquote(path, errors="surrogateescape")
        if decoded == path:
            return path
        path = decoded
    raise ProxyError(400, "the path is percent-encoded over and over; encode it once", code="invalid_path")
