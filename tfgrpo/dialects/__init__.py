"""What we read of each API, over raw bytes. A body is never changed here, and reading never raises."""

from __future__ import annotations

from typing import Protocol

from tfgrpo.dialects.chat import Chat
from tfgrpo.dialects.completions import Completions
from tfgrpo.dialects.encoding import decoded as decoded
from tfgrpo.dialects.messages import CountTokens, Messages
from tfgrpo.dialects.responses import Responses
from tfgrpo.types import Request, Response


class Dialect(Protocol):
    """A lens on one API."""

    @property
    def name(self) -> str:
        """The dialect's name in the store."""
        ...

    @property
    def turn(self) -> bool:
        """Whether its exchanges are turns of a trajectory; one that is none is no answer to learn from."""
        ...

    def read_request(self, body: bytes) -> Request | None:
        """Return what we read of a request; None when it is not one of this API."""
        ...

    def read_response(self, body: bytes, content_type: str) -> Response | None:
        """Return what we read of an answer, JSON or a whole stream; None when it is neither."""
        ...


_BY_PATH: dict[str, Dialect] = {
    "/chat/completions": Chat(),
    "/responses": Responses(),
    "/messages": Messages(),
    "/messages/count_tokens": CountTokens(),
    "/completions": Completions(),
}
_BY_NAME: dict[str, Dialect] = {dialect.name: dialect for dialect in _BY_PATH.values() if dialect.turn}


def dialect_of(path: str) -> Dialect | None:
    """Return the dialect of a path below the base (`/chat/completions`); None: relayed without reading."""
    return _BY_PATH.get(path)


def by_name(name: str | None) -> Dialect | None:
    """Return the dialect that a recorded exchange names."""
    return None if name is None else _BY_NAME.get(name)
