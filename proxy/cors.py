"""Answers to browsers: which pages of other origins may call the proxy (Fetch standard, section "CORS protocol").

Off unless `server.cors_origins` names origins: nothing here runs, and OPTIONS is relayed like any other method. On, a
preflight is answered before anybody asks for a key, every other answer gets headers of ours in place of the upstream's,
and the control plane gets none. It knows no API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from proxy.client import Client, Message, Receive, Scope, Send
from proxy.errors import ProxyError

Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
MAX_AGE_SECONDS: Final = b"7200"
"""As long as browsers keep a preflight's answer at most."""

_PREFIX: Final = b"access-control-"
_ANY: Final = "*"


class Cors:
    """Wraps an application. `origins` are exact, or `*` alone; only exact ones may send credentials along."""

    def __init__(self, app: Application, origins: tuple[str, ...]) -> None:
        self._app = app
        self._any = _ANY in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"].startswith("/admin"):
            await self._app(scope, receive, send)
            return
        fields = dict(scope["headers"])
        allowed = self._allowed(fields.get(b"origin"))
        if scope["method"] == "OPTIONS" and b"origin" in fields and b"access-control-request-method" in fields:
            await self._answer_preflight(fields.get(b"access-control-request-headers"), allowed, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _marked(message["headers"], allowed)}
            await send(message)

        await self._app(scope, receive, send_marked)

    def _allowed(self, origin: bytes | None) -> Headers:
        """The headers that let the page of `origin` read an answer; those that keep caches from mixing pages up."""
        if self._any:
            return [(b"access-control-allow-origin", b"*")]
        if origin not in self._origins:
            return [(b"vary", b"Origin")]
        return [
            (b"access-control-allow-origin", origin or b""),
            (b"access-control-allow-credentials", b"true"),
            (b"vary", b"Origin"),
        ]

    async def _answer_preflight(self, wanted: bytes | None, allowed: Headers, receive: Receive, send: Send) -> None:
        if allowed[0][0] == b"vary":
            error = ProxyError(
                403, "this origin is not in server.cors_origins", code="origin_not_allowed", headers=tuple(allowed)
            )
            await Client(receive, send).refuse(error)
            return
        headers = [
            *allowed,
            (b"access-control-allow-methods", METHODS),
            (b"access-control-max-age", MAX_AGE_SECONDS),
            (b"vary", b"Access-Control-Request-Method, Access-Control-Request-Headers"),
        ]
        if wanted is not None:
            headers.append((b"access-control-allow-headers", wanted))
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _marked(headers: Headers, allowed: Headers) -> Headers:
    """An answer's headers with ours; all of them may be read, rate limits and our own among them."""
    kept = [pair for pair in headers if not pair[0].lower().startswith(_PREFIX)]
    names = dict.fromkeys(name.lower() for name, _ in kept)
    exposed = [(b"access-control-expose-headers", b", ".join(names))] if names else []
    return [*kept, *allowed, *exposed]
