"""The refusal of WebSockets, in JSON, in both forms they come in: an HTTP request to upgrade, an ASGI connection."""

from __future__ import annotations

from typing import Final

from proxy.client import Scope, Send
from proxy.errors import ProxyError, envelope

REFUSED: Final = ProxyError(501, "WebSockets are not relayed; use the HTTP API", code="websocket_not_supported")


async def refuse(scope: Scope, send: Send) -> None:
    """Refuse an ASGI WebSocket connection: with the answer where the server can send one, else by closing it (403)."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    status, headers, body = envelope(REFUSED)
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
