from __future__ import annotations

import json
from typing import Any

from proxy.app import App
from proxy.settings import Settings


async def refusal(extensions: dict[str, Any]) -> list[Any]:
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    await App(Settings())({"type": "websocket", "path": "/v1/realtime", "extensions": extensions}, receive, send)
    return sent


async def test_a_websocket_of_asgi_is_a_501_in_json() -> None:
    start, body = await refusal({"websocket.http.response": {}})
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 501)
    assert json.loads(body["body"])["error"]["code"] == "websocket_not_supported"


async def test_where_a_server_can_send_no_answer_it_is_closed() -> None:
    assert await refusal({}) == [{"type": "websocket.close"}]
