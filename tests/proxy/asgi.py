"""Calls an ASGI endpoint as a server does, without a socket between."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
Endpoint = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found


async def call(
    endpoint: Endpoint, method: str, path: str, body: Any = None, *, key: str | None = None, host: str = "127.0.0.1"
) -> Answer:
    """Send one request: `body` is sent as JSON unless it is bytes, `key` as a bearer."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    path, _, query = path.partition("?")
    headers = [(b"host", host.encode())]
    if key is not None:
        headers.append((b"authorization", f"Bearer {key}".encode()))
    scope: Message = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 8000),
    }
    # Two pieces, as a larger body comes.
    pieces = [{"body": raw[:1], "more_body": True}, {"body": raw[1:], "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", **pieces.pop(0)} if pieces else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await endpoint(scope, receive, send)
    answered = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], answered, b"".join(message.get("body", b"") for message in sent[1:]))
