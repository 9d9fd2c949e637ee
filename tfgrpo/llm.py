"""Calls of a model: concurrency, retries, budget, and the memo of finished calls.

The only module of the package that knows litellm. It knows nothing of tasks, prompts or libraries: messages go in, a
text comes out. The API key goes into one header and nowhere else: not into keys of the memo, errors or logs.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias

import aiohttp

from tfgrpo.configuration import Model
from tfgrpo.errors import ModelError, RequestRefused, UsageError
from tfgrpo.memo import Memo
from tfgrpo.usage import Ledger, Usage, cost, estimated_tokens, price_of, require_price

JSON: TypeAlias = dict[str, Any]

PASSING: Final = frozenset({408, 409, 429})
"""Statuses below 500 that another attempt may overcome."""
OF_THIS_REQUEST: Final = frozenset({400, 413, 422})
"""Statuses that speak of one request and not of the endpoint."""
OPTIONAL: Final = ("response_format", "seed", "temperature")
"""Members an endpoint may refuse; it is then asked without them."""

_LONGEST_WAIT: Final = 120.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, connect=10, sock_read=600)


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished call. Token counts are None where the endpoint gave none, `usd` where the price is not known."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is tried, and how long the first wait is; waits double, with jitter."""

    attempts: int = 6
    wait: float = 0.5


class Endpoint(Protocol):
    """Something that answers chat completions."""

    async def ask(self, request: JSON) -> JSON:
        """Return the answer as OpenAI's JSON. Raises `Failure`, or ModelError when no attempt can help."""

    async def close(self) -> None:
        """Let connections go."""


class Failure(Exception):  # noqa: N818 - between an endpoint and its caller in this module only
    """An attempt that failed. `status` is None when no answer came."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    @property
    def passing(self) -> bool:
        """Whether another attempt may succeed."""
        return self.status is None or self.status in PASSING or self.status >= 500  # noqa: PLR2004 - HTTP


class Llm:
    """One model, with everything that stands between a caller and its answer.

    Use as `async with`. After a failure that is not about one request (a wrong key, a dead host) each further call
    fails at once with the same error. `endpoint` takes the place of the one that follows from `model`.
    """

    def __init__(
        self,
        model: Model,
        *,
        ledger: Ledger,
        memo: Memo | None = None,
        concurrency: int = 8,
        patience: Patience | None = None,
        endpoint: Endpoint | None = None,
    ) -> None:
        if not model.model:
            raise UsageError("no model is named: set training.policy.model or training.optimizer.model")
        if ledger.bounds_money:
            require_price(model)
        self.name = model.model
        self._model = model
        self._ledger = ledger
        self._memo = memo
        self._free = asyncio.Semaphore(concurrency)
        self._patience = patience or Patience()
        self._price = price_of(model)
        self._provider = model.provider or ("openai" if model.base_url else "litellm")
        self._endpoint = endpoint or (Litellm(model) if self._provider == "litellm" else OpenAI(model))
        self._refused: set[str] = set()
        self._broken: ModelError | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._endpoint.close()

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        stage: str,
        temperature: float | None = None,
        seed: int | None = None,
        schema: JSON | None = None,
        sample: int = 0,
    ) -> Completion:
        """Return the model's answer, from the memo when this very call was finished before.

        `sample` tells repeated calls of one request apart. `stage` is the name the call is accounted under.

        Raises:
            RequestRefused: the endpoint will not answer this request.
            ModelError: the endpoint cannot be used.
            BudgetExceeded: nothing more may be spent.
        """
        request: JSON = {"model": self.name, "messages": list(messages)}
        if temperature is not None:
            request["temperature"] = temperature
        if seed is not None:
            request["seed"] = seed
        if schema is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        key = self._key(request, sample)
        async with self._free:
            found = await self._recall(key)
            if found is not None:
                self._ledger.add(stage, Usage(replayed=1))
                return found
            return await self._call(request, key, stage)

    async def _call(self, request: JSON, key: str, stage: str) -> Completion:
        self._ledger.check()
        if self._broken is not None:
            raise self._broken
        try:
            completion = _completion(await self._ask(request))
        except RequestRefused:
            raise
        except ModelError as error:
            self._broken = error
            raise
        prompt = completion.prompt_tokens
        answer = completion.completion_tokens
        if prompt is None or answer is None:
            prompt, answer = _estimates(request), estimated_tokens(len(completion.text))
        usd = cost(self._price, prompt, answer)
        self._ledger.add(stage, Usage(1, 0, prompt, answer, usd))
        await self._remember(key, completion)
        return Completion(completion.text, completion.prompt_tokens, completion.completion_tokens, usd)

    async def _ask(self, request: JSON) -> JSON:
        attempt = 1
        while True:
            sent = {k: v for k, v in request.items() if k not in self._refused}
            try:
                return await self._endpoint.ask(sent)
            except Failure as failure:
                if self._learns_from(failure, sent):
                    continue
                wait = self._wait(failure, attempt)
                if not failure.passing or attempt >= self._patience.attempts or wait > _LONGEST_WAIT:
                    raise self._error(failure, attempt) from failure
            attempt += 1
            await asyncio.sleep(wait)

    def _learns_from(self, failure: Failure, sent: JSON) -> bool:
        """Note which optional members a refusal names; whether the request can be tried without them."""
        if failure.status not in OF_THIS_REQUEST:
            return False
        named = {name for name in OPTIONAL if name in sent and name in str(failure)}
        if "response_format" in sent and "json_schema" in str(failure):
            named.add("response_format")
        self._refused |= named
        return bool(named)

    def _wait(self, failure: Failure, attempt: int) -> float:
        if failure.retry_after is not None:
            return failure.retry_after
        wait = self._patience.wait * 2.0 ** (attempt - 1)
        return float(min(wait, 30.0) * random.uniform(0.5, 1.5))  # noqa: S311 - spreads retries, guards nothing

    def _error(self, failure: Failure, attempts: int) -> ModelError:
        said = f"{self.name}: {failure}"
        match failure.status:
            case None:
                return ModelError(f"{said} ({attempts} attempts); check base_url and that the server runs")
            case 401 | 403:
                return ModelError(f"{said}; check the api_key of this model")
            case 404:
                return ModelError(f"{said}; check the model's name and base_url")
            case status if status in OF_THIS_REQUEST:
                return RequestRefused(said)
            case _:
                return ModelError(f"{said} ({attempts} attempts); finished calls are kept: try again later")

    def _key(self, request: JSON, sample: int) -> str:
        parts = [self._provider, self._model.base_url, request, sample]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    async def _recall(self, key: str) -> Completion | None:
        text = await self._memo.get(key) if self._memo is not None else None
        try:
            row = json.loads(text) if text is not None else None
        except ValueError:
            return None
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            return None
        return Completion(row["text"], row.get("prompt_tokens"), row.get("completion_tokens"), 0.0, True)

    async def _remember(self, key: str, completion: Completion) -> None:
        if self._memo is None:
            return
        row = {
            "text": completion.text,
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
        }
        await self._memo.put(key, json.dumps(row))


class OpenAI:
    """An OpenAI-compatible endpoint at `base_url`."""

    def __init__(self, model: Model) -> None:
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
            said = _without(self._key.get_secret_value() if self._key else "", _message(body))
            raise Failure(
                f"{self._url} answered {response.status}: {said}",
                status=response.status,
                retry_after=_seconds(response.headers.get("retry-after")),
            )
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise Failure(f"{self._url} answered with something that is not JSON") from error
        if not isinstance(answer, dict):
            raise Failure(f"{self._url} answered with something that is not a completion")
        return answer

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


class Litellm:
    """Any model litellm knows. litellm is imported at the first call."""

    def __init__(self, model: Model) -> None:
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
            said = _without(key or "", " ".join(str(error).split()))[:500]
            status = getattr(error, "status_code", None)
            response = getattr(error, "response", None)
            header = response.headers.get("retry-after") if response is not None else None
            raise Failure(said, status=status, retry_after=_seconds(header)) from None
        dumped = answer.model_dump()
        return dumped if isinstance(dumped, dict) else {}

    async def close(self) -> None:
        """Nothing is held here."""


def _completion(answer: JSON) -> Completion:
    try:
        text = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise RequestRefused("the answer holds no choice with a message") from error
    usage = answer.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Completion(
        text if isinstance(text, str) else "",
        _count(counts.get("prompt_tokens")),
        _count(counts.get("completion_tokens")),
        None,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _estimates(request: JSON) -> int:
    return estimated_tokens(sum(len(str(message.get("content"))) for message in request["messages"]))


def _message(body: bytes) -> str:
    """Return what an error body says, on one line."""
    try:
        error = json.loads(body)["error"]
        text = error["message"] if isinstance(error, dict) else str(error)
        param = error.get("param") if isinstance(error, dict) else None
    except (ValueError, KeyError, TypeError):
        text, param = body.decode("utf-8", "replace"), None
    folded = " ".join(str(text).split())[:300]
    return f"{folded} (param {param})" if param else folded


def _without(secret: str, text: str) -> str:
    """Return `text` with a key that the endpoint repeats taken out."""
    return text.replace(secret, "[api_key]") if secret else text


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header is not None else None
    except ValueError:
        return None
