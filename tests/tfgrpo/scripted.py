"""An OpenAI-compatible endpoint on a free local port that answers as a test tells it to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web

from tfgrpo.configuration import Model

JSON: TypeAlias = dict[str, Any]
Reply: TypeAlias = "str | JSON | web.Response"


@dataclass
class Endpoint:
    """`requests` holds what was asked, `headers` under which headers, in order of arrival."""

    url: str
    requests: list[JSON] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.url.removesuffix("/v1").rpartition(":")[2])

    def model(self, name: str = "tester", **settings: Any) -> Model:
        return Model(model=name, base_url=self.url, **settings)


def completion(text: str, **usage: int) -> JSON:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "tester",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **usage},
    }


def refusal(status: int, message: str, param: str | None = None, **headers: str) -> web.Response:
    error = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}
    return web.json_response(error, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


def stage(request: JSON) -> str:
    """The stage that an optimizer's call names on its first line."""
    return str(request["messages"][0]["content"].splitlines()[0].removeprefix("Stage: "))


def sections(request: JSON) -> str:
    """The user message of an optimizer's call."""
    return str(request["messages"][1]["content"])


@asynccontextmanager
async def serving(reply: Callable[[JSON], Reply], *, port: int = 0) -> AsyncIterator[Endpoint]:
    """Serve; `reply` turns each request into a text, a JSON body or a whole response."""

    async def handle(request: web.Request) -> web.Response:
        asked = json.loads(await request.read())
        endpoint.requests.append(asked)
        endpoint.headers.append(dict(request.headers))
        said = reply(asked)
        if isinstance(said, web.Response):
            return said
        return web.json_response(completion(said) if isinstance(said, str) else said)

    application = web.Application()
    application.router.add_post("/v1/chat/completions", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    endpoint = Endpoint(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    try:
        yield endpoint
    finally:
        await runner.cleanup()
