"""The ends that a model is asked at: an OpenAI-compatible address, or whatever litellm reaches.

The only module of the package that knows litellm. A request goes in as OpenAI's JSON and the answer comes out as such;
what went wrong is a `Failure` that says whether another attempt may help. It knows nothing of retries, money or memory.
The API key goes into one header and nowhere else.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import aiohttp
from pydantic import SecretStr

from tfgrpo import credit, pace
from tfgrpo.configuration import Model
from tfgrpo.pace import Limits

JSON: TypeAlias = dict[str, Any]

PASSING: Final = frozenset({408, 409, 429})
"""Statuses below 500 that another attempt may overcome."""
UNSUPPORTED: Final = 501
"""What was asked for is not there; it will not be there at the next attempt."""

_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, connect=10, sock_read=600)


class Endpoint(Protocol):
    """Something that answers chat completions."""

    async def ask(self, request: JSON) -> JSON:
        """Return the answer as OpenAI's JSON. Raises `Failure`, or ModelError when no attempt can help."""

    async def close(self) -> None:
        """Let connections go."""


class Failure(Exception):  # noqa: N818 - between an endpoint and its caller in this module only
    """An attempt that failed. `status` is None when no answer came, `broke` where the account has no money left."""

    def __init__(
        self, message: str, *, status: int | None = None, limits: Limits | None = None, broke: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.broke = broke
        self.limits = limits or Limits()

    @property
    def passing(self) -> bool:
        """Whether another attempt may succeed."""
        if self.status is None or self.status in PASSING:
            return True
        return self.status >= 500 and self.status != UNSUPPORTED  # noqa: PLR2004 - HTTP


class OpenAI:
    """An OpenAI-compatible endpoint at `base_url`. `told` hears what each good answer says of a rate limit."""

    def __init__(self, model: Model, told: Callable[[Limits], None] = lambda _: None) -> None:
        self._told = told
        self._url = f"{model.base_url or 'https://api.openai.com/v1'}/chat/completions"
        self._key = model.api_key
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: JSON) -> JSON:
        """Return the endpoint's answer; see `Endpoint`."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        headers = {"Authorization": f"Bearer {self._key.get_secret_value()}"} if self._key else {}
        try:
            async with self._session.post(self._url, json=request, headers=headers) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Failure(f"no answer from {self._url} ({type(error).__name__})") from error
        if response.status >= 400:  # noqa: PLR2004 - HTTP
            said = _message(body, self._key)
            raise Failure(
                f"{self._url} answered {response.status}: {said}",
                status=response.status,
                limits=pace.limits(response.headers),
                broke=credit.exhausted(response.status, body),
            )
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise Failure(f"{self._url} answered with something that is not JSON") from error
        if not isinstance(answer, dict):
            raise Failure(f"{self._url} answered with something that is not a completion")
        if answer.get("error") and not answer.get("choices"):
            # Some gateways say so with a 200, as they have begun to answer.
            said = _message(body, self._key)
            raise Failure(f"{self._url} answered with an error: {said}", broke=credit.exhausted(None, body))
        self._told(pace.limits(response.headers))
        return answer

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


class Litellm:
    """Any model litellm knows. litellm is imported at the first call. `told` as for `OpenAI`."""

    def __init__(self, model: Model, told: Callable[[Limits], None] = lambda _: None) -> None:
        self._told = told
        self._base_url = model.base_url
        self._key = model.api_key

    async def ask(self, request: JSON) -> JSON:
        """Return the provider's answer; see `Endpoint`."""
        # Without this litellm fetches prices from the network as it is imported.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        # Four seconds: not at start, and not on the event loop.
        litellm = await asyncio.to_thread(importlib.import_module, "litellm")
        openai = importlib.import_module("openai")
        key = self._key.get_secret_value() if self._key else None
        try:
            answer = await litellm.acompletion(
                **request, api_base=self._base_url, api_key=key, num_retries=0, max_retries=0, drop_params=True
            )
        except openai.OpenAIError as error:
            status = getattr(error, "status_code", None)
            response = getattr(error, "response", None)
            limits = pace.limits(response.headers) if response is not None else None
            said = _line(str(error), self._key, 500)
            raise Failure(said, status=status, limits=limits, broke=_broke(error, status)) from None
        self._told(pace.limits(_passed_on(answer)))
        dumped = answer.model_dump()
        return dumped if isinstance(dumped, dict) else {}

    async def close(self) -> None:
        """Nothing is held here."""


def _passed_on(answer: Any) -> dict[str, str]:
    """Return the headers of a provider's answer, which litellm keeps beside it under names of its own."""
    headers = getattr(answer, "_hidden_params", {}).get("additional_headers") or {}
    return {str(name).removeprefix("llm_provider-"): str(value) for name, value in headers.items()}


def _broke(error: BaseException, status: int | None) -> bool:
    """Whether an error of litellm's, or the provider's that it was made from, says that there is no money."""
    told = [(status, str(error)), (status, getattr(error, "body", None))]
    if (first := error.__context__) is not None:
        own = getattr(first, "status_code", None)
        told += [(own, str(first)), (own, getattr(first, "body", None))]
    return any(credit.exhausted(status, said) for status, said in told)


def _message(body: bytes, key: SecretStr | None) -> str:
    """Return what an error body says, on one line."""
    try:
        error = json.loads(body)["error"]
        text = error["message"] if isinstance(error, dict) else str(error)
        param = error.get("param") if isinstance(error, dict) else None
    except (ValueError, KeyError, TypeError):
        text, param = body.decode("utf-8", "replace"), None
    said = _line(str(text), key, 300)
    return f"{said} (param {_line(str(param), key, 100)})" if param else said


def _line(text: str, key: SecretStr | None, most: int) -> str:
    """Return `text` on one line, without a key that it repeats: taken out first, for a cut would leave half of it."""
    secret = key.get_secret_value() if key is not None else ""
    clean = text.replace(secret, "[api_key]") if secret else text
    return " ".join(clean.split())[:most]
