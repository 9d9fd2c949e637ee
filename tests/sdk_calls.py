"""A program that makes the calls of an official SDK and prints, as JSON, all that the SDK returned or raised.

`python -m tests.sdk_calls openai|anthropic BASE_URL`. It is run in a process of its own, for there may be one version
of an SDK in a process; it uses what OpenAI's 1.x and newest have in common.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

Calls = dict[str, Callable[[], Any]]

_USER: Any = [{"role": "user", "content": "hi"}]
_TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
_CACHED: Any = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
STATUSES = (400, 401, 403, 404, 409, 413, 422, 429, 500, 503, 529)


def openai_calls(base_url: str) -> tuple[Calls, type[Exception]]:
    """The calls of OpenAI's SDK."""
    import openai  # noqa: PLC0415 - one SDK a process

    client: Any = openai.OpenAI(base_url=f"{base_url}/v1", api_key="sk-client", max_retries=0)
    chat = client.chat.completions.with_raw_response.create

    def asked(**more: Any) -> Callable[[], Any]:
        return lambda: chat(**{"model": "m", "messages": _USER, **more})

    def respond(**more: Any) -> Callable[[], Any]:
        return lambda: client.responses.with_raw_response.create(model="m", input="hi", **more)

    upload = ("a.jsonl", b"--boundary\r\n\x00\xff", "application/jsonl")
    calls = {
        "chat": asked(),
        "chat stream": asked(stream=True),
        "chat n": asked(n=2),
        "chat n stream": asked(n=2, stream=True),
        "chat tools": asked(tools=[_TOOL]),
        "chat logprobs": asked(logprobs=True),
        "chat unknown": asked(extra_body={"unknown": [1e-7, None]}),
        "completions": lambda: client.completions.with_raw_response.create(model="m", prompt="hi"),
        "embeddings": lambda: client.embeddings.with_raw_response.create(model="m", input=["a", "b"]),
        "models": client.models.with_raw_response.list,
        "model": lambda: client.models.with_raw_response.retrieve("org/name"),
        "file": lambda: client.files.with_raw_response.create(file=upload, purpose="batch"),
        "content": lambda: client.files.with_raw_response.content("file-1"),
        "audio": lambda: client.audio.transcriptions.with_raw_response.create(model="m", file=upload),
        "image": lambda: client.images.with_raw_response.generate(model="m", prompt="a cat"),
        "batch": lambda: client.batches.with_raw_response.create(
            input_file_id="file-1", endpoint="/v1/chat/completions", completion_window="24h"
        ),
        "response": respond(),
        "response stream": respond(stream=True, previous_response_id="resp_1"),
        "retrieve": lambda: client.responses.with_raw_response.retrieve("resp_1"),
        "delete": lambda: client.responses.with_raw_response.delete("resp_1"),
        **{f"error {code}": asked(model=f"error-{code}") for code in STATUSES},
        "broken stream": asked(model="broken", stream=True),
        "error in the stream": asked(model="error-event", stream=True),
    }
    return calls, openai.OpenAIError


def anthropic_calls(base_url: str) -> tuple[Calls, type[Exception]]:
    """The calls of Anthropic's SDK."""
    import anthropic  # noqa: PLC0415 - one SDK a process

    client: Any = anthropic.Anthropic(base_url=base_url, api_key="sk-ant-client", max_retries=0)
    messages = client.messages.with_raw_response
    batch: Any = [{"custom_id": "1", "params": {"model": "m", "max_tokens": 9, "messages": _USER}}]

    def asked(**more: Any) -> Callable[[], Any]:
        return lambda: messages.create(**{"model": "m", "max_tokens": 9, "messages": _USER, **more})

    calls = {
        "message": asked(),
        "message stream": asked(stream=True),
        "system": asked(system="Be kind."),
        "system blocks": asked(system=_CACHED),
        "beta": asked(extra_headers={"anthropic-beta": "a-1,b-2"}),
        "count": lambda: messages.count_tokens(model="m", messages=_USER),
        "models": client.models.with_raw_response.list,
        "batch": lambda: messages.batches.create(requests=batch),
        **{f"error {code}": asked(model=f"error-{code}") for code in STATUSES},
        "broken stream": asked(model="broken", stream=True),
    }
    return calls, anthropic.AnthropicError


def seen(call: Callable[[], Any], errors: type[Exception]) -> list[Any]:
    """Everything one call shows to an application."""
    said: list[Any] = []
    try:
        raw = call()
        said.append(_headers(raw.headers))
        parsed = raw.parse()
        if hasattr(parsed, "model_dump"):
            said.append(parsed.model_dump())
        elif hasattr(parsed, "read"):
            said.append(parsed.read().hex())
        else:
            said.extend(one.model_dump() for one in parsed)
    except errors as error:
        said += _raised(error)
    except Exception as error:  # noqa: BLE001 - what the HTTP client below raises is seen by an application too
        said.append(type(error).__name__)
    return said


def _raised(error: Any) -> list[Any]:
    response = getattr(error, "response", None)
    said = [type(error).__name__, str(error), getattr(error, "status_code", None), getattr(error, "body", None)]
    return [*said, _headers(response.headers) if response is not None else None]


def _headers(headers: Any) -> list[tuple[str, str]]:
    hops = ("date", "connection", "transfer-encoding")
    pairs = [(name.lower(), value) for name, value in headers.multi_items()]
    return [pair for pair in pairs if pair[0] not in hops and not pair[0].startswith("x-tfgrpo-")]


if __name__ == "__main__":
    made, raises = {"openai": openai_calls, "anthropic": anthropic_calls}[sys.argv[1]](sys.argv[2])
    print(json.dumps({name: seen(call, raises) for name, call in made.items()}, default=str))  # noqa: T201 - its answer
