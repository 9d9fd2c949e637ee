"""The HTTP around the provider: OpenAI's `/v1/models` and `/v1/chat/completions`, streaming and not.

It knows how answers and errors look on the wire, and nothing of what they say. Any key is accepted, or none.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tfgrpo.errors import UsageError
from tfgrpo.simulation.dials import Dials
from tfgrpo.simulation.provider import MODELS, Completion, Provider
from tfgrpo.simulation.request import Refused

_PIECE = re.compile(r"(?:\S+\s*|\s+){1,3}")


def serve(host: str, port: int, *, seed: int) -> None:
    """Serve the world of `seed` until interrupted; port 0 takes a free one. Prints one line with the URL and models.

    Raises:
        UsageError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error}; name another --port", field="port") from error
    config = uvicorn.Config(create(seed), log_level="warning", access_log=False)
    shown = f"[{host}]" if family == socket.AF_INET6 else host
    url = f"http://{shown}:{listener.getsockname()[1]}/v1"
    sys.stdout.write(f"simulated provider at {url} with models {' and '.join(MODELS)} (seed {seed})\n")
    sys.stdout.flush()
    uvicorn.Server(config).run(sockets=[listener])


def create(seed: int, dials: Dials | None = None) -> Starlette:
    """The provider of this seed as an ASGI application."""
    return application(Provider(seed, dials))


def application(provider: Provider) -> Starlette:
    """A provider as an ASGI application."""
    endpoint = _Endpoint(provider)
    return Starlette(
        routes=[
            Route("/v1/models", endpoint.models, methods=["GET"]),
            Route("/v1/models/{model:path}", endpoint.model, methods=["GET"]),
            Route("/v1/chat/completions", endpoint.chat, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _http_error, Refused: _refusal},
    )


class _Endpoint:
    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._started = int(time.time())

    async def models(self, _request: HttpRequest) -> Response:
        return _json({"object": "list", "data": [self._described(model) for model in MODELS]})

    async def model(self, request: HttpRequest) -> Response:
        name = request.path_params["model"]
        if name not in MODELS:
            raise Refused.unknown_model(name, MODELS)
        return _json(self._described(name))

    async def chat(self, request: HttpRequest) -> Response:
        try:
            body = await request.body()
        except ClientDisconnect:
            return Response(status_code=400)
        answer = self._provider.answer(body)
        created = int(time.time())
        if not answer.stream:
            return _json(_completion(answer, created))
        return StreamingResponse(
            _stream(answer, created),
            media_type="text/event-stream; charset=utf-8",
            headers={"cache-control": "no-cache"},
        )

    def _described(self, model: str) -> dict[str, Any]:
        return {"id": model, "object": "model", "created": self._started, "owned_by": "simulation"}


def _completion(answer: Completion, created: int) -> dict[str, Any]:
    return {
        "id": answer.id,
        "object": "chat.completion",
        "created": created,
        "model": answer.model,
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": text, "refusal": None},
                "logprobs": None,
                "finish_reason": reason,
            }
            for index, (text, reason) in enumerate(zip(answer.texts, answer.finish_reasons, strict=True))
        ],
        "usage": _usage(answer),
    }


def _usage(answer: Completion) -> dict[str, int]:
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }


async def _stream(answer: Completion, created: int) -> AsyncIterator[bytes]:
    head = {"id": answer.id, "object": "chat.completion.chunk", "created": created, "model": answer.model}
    # OpenAI's streams carry `usage: null` in every other chunk when the last one holds it.
    rest: dict[str, Any] = {"usage": None} if answer.include_usage else {}
    for choices in _chunks(answer):
        yield _event({**head, "choices": [choices], **rest})
    if answer.include_usage:
        yield _event({**head, "choices": [], "usage": _usage(answer)})
    yield b"data: [DONE]\n\n"


def _chunks(answer: Completion) -> Iterator[dict[str, Any]]:
    for index, (text, reason) in enumerate(zip(answer.texts, answer.finish_reasons, strict=True)):
        yield _delta(index, {"role": "assistant", "content": ""}, None)
        for piece in _PIECE.findall(text):
            yield _delta(index, {"content": piece}, None)
        yield _delta(index, {}, reason)


def _delta(index: int, delta: dict[str, str], reason: str | None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _json(value: dict[str, Any], status: int = 200) -> Response:
    # Escaped to ASCII: a lone surrogate of the request may stand in the answer.
    return Response(json.dumps(value), status_code=status, media_type="application/json")


async def _refusal(_request: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _error(str(error), error.status, param=error.param, code=error.code)


async def _http_error(request: HttpRequest, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    asked = f"{error.detail}: {request.method} {request.url.path}"
    return _error(f"{asked}; this provider has GET /v1/models and POST /v1/chat/completions", error.status_code)


def _error(message: str, status: int, *, param: str | None = None, code: str | None = None) -> Response:
    body = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return _json({"error": body}, status)
