"""The way to providers that do not speak the caller's API: litellm translates, there and back.

The same small interface as `upstream.HttpUpstream`: a request in, an answer out, `Unreachable` and `Broken` in
between. litellm costs seconds and 200 MB, so it is loaded when a worker starts and only where such an upstream is
configured. It retries nothing, falls back to nothing, drops no parameter, and logs and reports nothing.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from proxy import litellm_errors, litellm_models, litellm_requests
from proxy.answers import Answer, Take
from proxy.calls import off_loop
from proxy.errors import ProxyError
from proxy.failures import Broken, Unreachable
from proxy.litellm_requests import JSON, Operation
from proxy.routing import Translated, Upstream
from proxy.settings import Settings
from tfgrpo.errors import UsageError

_OURS: Final[Mapping[str, Any]] = {"num_retries": 0, "max_retries": 0, "drop_params": False}
_QUIET: Final[Mapping[str, Any]] = {
    "suppress_debug_info": True,
    "telemetry": False,
    "drop_params": False,
    "modify_params": False,
    "turn_off_message_logging": True,
}
_LOGGERS: Final = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router")


class Whole:
    """An answer that is there in one piece, as from every upstream."""

    bodiless = False
    take: Take | None = None

    def __init__(self, status: int, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.status = status
        self.headers: Sequence[tuple[bytes, bytes]] = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *headers,
        ]
        self.ended = False
        self._body = body

    async def read(self) -> bytes:
        """Return all of it, once."""
        body, self._body, self.ended = self._body, b"", True
        return body

    def close(self) -> None:
        """Nothing is held."""


class Stream:
    """An answer in events, as from every upstream. `first` was read before, so that the status could be decided."""

    status = 200
    bodiless = False
    take: Take | None = None
    headers: Sequence[tuple[bytes, bytes]] = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache"))

    def __init__(
        self, events: Any, first: Any, asked: Operation, *, idle: float, key: str, closing: set[asyncio.Task[None]]
    ) -> None:
        self.ended = False
        self._events = events
        self._next = first
        self._asked = asked
        self._idle = idle
        self._key = key
        self._closing = closing

    async def read(self) -> bytes:
        """Return the next event, framed as OpenAI frames it; b"" at the end."""
        if self.ended:
            return b""
        event, self._next = self._next, None
        if event is None:
            try:
                async with asyncio.timeout(self._idle):
                    event = await anext(self._events, None)
            except TimeoutError as error:
                raise Broken("it fell silent") from error
            except Exception as error:
                raise Broken(litellm_errors.broken(error, self._key)) from error
        if event is None:
            self.ended = True
            return self._asked.done
        head = b"event: %s\n" % str(event.type.value).encode() if self._asked.named else b""
        return b"%sdata: %s\n\n" % (head, event.model_dump_json().encode())

    def close(self) -> None:
        """Let go of the connection below, in a task that `LitellmUpstream` waits for."""
        if not self.ended:
            task = asyncio.create_task(self._events.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


class LitellmUpstream:
    """Every provider that is reached through litellm. `load` it before the first `send`, inside the event loop.

    `models` are those that the configuration names, with their owners.
    """

    def __init__(self, settings: Settings, models: Mapping[str, str]) -> None:
        self._models = models
        self._timeouts = settings.timeouts
        self._trust_env = settings.server.trust_env
        self._closing: set[asyncio.Task[None]] = set()
        self._litellm: Any = None
        self._patience: Any = None

    async def load(self, providers: Sequence[str]) -> None:
        """Import litellm, in a thread. UsageError when it does not know one of the providers."""
        # Without this litellm fetches prices from the network as it is imported.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        self._litellm = await asyncio.to_thread(importlib.import_module, "litellm")
        known = {getattr(one, "value", one) for one in self._litellm.provider_list}
        for provider in providers:
            if provider not in known:
                raise UsageError(
                    f"custom_llm_provider {provider!r} is no provider that litellm knows; correct it, or leave "
                    "`provider` out for an endpoint that speaks the OpenAI API"
                )
        for name, value in _QUIET.items():
            setattr(self._litellm, name, value)
        # A finalizer of its streams sets a context variable, for log lines that are off here. Run by the collector
        # while another one is being set, that can crash Python 3.11 (python/cpython, issue 148891).
        with suppress(AttributeError):
            del self._litellm.CustomStreamWrapper.__del__
        self._litellm.disable_aiohttp_trust_env = not self._trust_env
        for name in _LOGGERS:
            # It logs requests and errors with their texts; what failed is in our record.
            logging.getLogger(name).disabled = True
        longest = max(self._timeouts.first_byte, self._timeouts.idle)
        self._patience = importlib.import_module("httpx").Timeout(longest, connect=self._timeouts.connect)

    async def send(
        self,
        upstream: Upstream,
        way: Translated,
        key: str,
        line: tuple[str, str],
        body: bytes | AsyncIterator[bytes] | None,
    ) -> Answer:
        """Ask a provider and return when it is known what the answer will be. `line` is method and path.

        `key` is what it is paid with, empty for none.

        Raises:
            ProxyError: The request cannot be carried, and was not; or litellm failed.
            Unreachable: No answer came.
        """
        if (listed := litellm_models.answer(*line, self._models)) is not None:
            return Whole(200, listed)
        asked = litellm_requests.operation(*line, upstream.name)
        if not isinstance(body, bytes):
            raise ProxyError(400, "send the body as application/json, not compressed", code="invalid_json")
        fields = await off_loop(len(body), litellm_requests.fields, body, asked)
        if not key and not way.environment:
            raise ProxyError(
                401,
                f"the upstream {upstream.name!r} needs a key and none was sent; send one, or configure its `api_key` "
                "or `credentials: environment`",
                code="invalid_api_key",
            )
        try:
            async with asyncio.timeout(self._timeouts.first_byte):
                return await self._ask(asked, self._arguments(fields, upstream, way, key), key)
        except TimeoutError as error:
            raise Unreachable("it did not answer in time", timed_out=True) from error

    async def close(self) -> None:
        """Wait for answers that are being let go of, and close litellm's connections."""
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()

    def _arguments(self, fields: JSON, upstream: Upstream, way: Translated, key: str) -> JSON:
        model: str = fields["model"]
        return {
            **fields,
            **way.params,
            **_OURS,
            # With the prefix always there, no part of the name can pass for another provider.
            "model": model if model.startswith(f"{way.provider}/") else f"{way.provider}/{model}",
            "custom_llm_provider": way.provider,
            "api_base": upstream.base_url or None,
            "api_key": key or None,
            "timeout": self._patience,
        }

    async def _ask(self, asked: Operation, arguments: JSON, key: str) -> Answer:
        try:
            answer = await getattr(self._litellm, asked.call)(**arguments)
            if not arguments.get("stream"):
                return Whole(200, answer.model_dump_json().encode())
            first = await anext(answer, None)
        except Exception as error:  # noqa: BLE001 - litellm raises anything; `told` says what it means
            refusal = litellm_errors.told(error, key)
            return Whole(refusal.status, refusal.body, refusal.headers)
        return Stream(answer, first, asked, idle=self._timeouts.idle, key=key, closing=self._closing)
