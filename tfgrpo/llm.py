"""Calls of a model: concurrency, retries, budget, and the memo of finished calls.

It knows nothing of tasks, prompts or libraries: messages go in, a text comes out. The API key is not in keys of the
memo, errors or logs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from tfgrpo import answers
from tfgrpo.configuration import Model
from tfgrpo.endpoint import Endpoint, Failure, Litellm, OpenAI
from tfgrpo.errors import BudgetExceeded, ModelError, OutOfCredit, RequestRefused, TfgrpoError, UsageError
from tfgrpo.memo import Memo
from tfgrpo.pace import LONGEST_PAUSE, Clock, Pace, RealClock
from tfgrpo.usage import Ledger, Tokens, Usage, cost, estimated_tokens, price_of, require_price

JSON: TypeAlias = dict[str, Any]

OF_THIS_REQUEST: Final = frozenset({400, 413, 422})
"""Statuses that speak of one request and not of the endpoint."""
PERHAPS_OPTIONAL: Final = frozenset({400, 404, 422, 501})
"""Statuses under which an endpoint may refuse an optional member without naming it."""
OPTIONAL: Final = ("response_format", "seed", "temperature")
"""Members an endpoint may refuse; it is then asked without them. Not named, they are given up in this order."""

_LONGEST_WAIT: Final = LONGEST_PAUSE
_LIMITED: Final = 429
_LAST_ANSWERS: Final = 30.0
"""Seconds that answers under way are waited for when there is no more money."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished call. Token counts are None where the endpoint gave none, `usd` where the price is not known."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    usd: float | None
    replayed: bool = False
    key: str = ""
    """Its name in the memo."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is tried, and how long the first wait is; waits double, with jitter."""

    attempts: int = 6
    wait: float = 0.5


class Llm:
    """One model, with everything that stands between a caller and its answer.

    Use as `async with`. After a failure that is not about one request (a wrong key, no money left, a dead host) each
    further call fails at once with the same error. `endpoint` takes the place of the one that follows from `model`.
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
        clock: Clock | None = None,
    ) -> None:
        if not model.model:
            raise UsageError("no model is named: set training.policy.model or training.optimizer.model")
        if ledger.bounds_money:
            require_price(model)
        self.name = model.model
        self._model = model
        self._ledger = ledger
        self._memo = memo
        self._clock = clock or RealClock()
        self._free = asyncio.Semaphore(concurrency)
        self._pace = Pace(concurrency, self._clock)
        self._patience = patience or Patience()
        self._price = price_of(model)
        self._provider = model.provider or ("openai" if model.base_url else "litellm")
        self._endpoint = endpoint or (Litellm if self._provider == "litellm" else OpenAI)(model, self._pace.told)
        self._refused: set[str] = set()
        self._taken: set[str] = set()
        self._asking: dict[str, asyncio.Task[Completion]] = {}
        self._paid: set[asyncio.Task[Any]] = set()
        self._broken: TfgrpoError | None = None
        self._went_well = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = set(self._asking.values())
        if isinstance(error, BudgetExceeded) and (paid := left & self._paid):
            # What the endpoint is at will be paid for: those answers are kept, and nothing new is asked.
            self._broken = self._broken or error
            await asyncio.wait(paid, timeout=_LAST_ANSWERS)
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)
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
        may_be_empty: bool = False,
        parameters: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Return the model's answer, from the memo when this very call was finished before.

        `sample` tells repeated calls of one request apart. `stage` is the name the call is accounted under. An empty
        answer is remembered only where it `may_be_empty`, as one of many that are graded. `parameters` are members of
        the request that have no argument here.

        Raises:
            RequestRefused: the endpoint will not answer this request.
            ModelError: the endpoint cannot be used.
            BudgetExceeded: nothing more may be spent; OutOfCredit: the provider says so.
        """
        request: JSON = {**(parameters or {}), "model": self.name, "messages": list(messages)}
        if temperature is not None:
            request["temperature"] = temperature
        if seed is not None:
            request["seed"] = seed
        if schema is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        key = self._key(request, sample)
        if (under_way := self._asking.get(key)) is not None:
            # The same request is asked once; whoever asks second waits for the first one's answer.
            return await asyncio.shield(under_way)
        answer = asyncio.ensure_future(self._answer(request, key, stage, may_be_empty=may_be_empty))
        self._asking[key] = answer
        answer.add_done_callback(lambda done: self._answered(key, done))
        # Shielded: whoever gives up waiting does not take the answer from the others. `__aexit__` ends what is left.
        return await asyncio.shield(answer)

    async def forget(self, *answers: Completion) -> None:
        """Take answers out of the memo that turned out to be of no use: a later run asks anew."""
        for one in answers:
            if self._memo is not None and one.key:
                await self._memo.drop(one.key)

    def _answered(self, key: str, done: asyncio.Future[Completion]) -> None:
        self._asking.pop(key, None)
        if not done.cancelled():
            done.exception()  # looked at, for there may be nobody left who waits

    async def _answer(self, request: JSON, key: str, stage: str, *, may_be_empty: bool) -> Completion:
        # Until it is remembered: so no more than these few are lost, and paid for again, when the process is killed.
        async with self._free:
            found = await self._recall(key)
            if found is not None:
                self._ledger.add(stage, Usage(replayed=1))
                return found
            completion = await self._call(request, key, stage)
            if may_be_empty or completion.text.strip():
                await self._remember(key, completion)
            return completion

    async def _call(self, request: JSON, key: str, stage: str) -> Completion:
        async with self._ledger.room(stage, _estimates(request), self._price):
            if self._broken is not None:
                raise self._broken
            try:
                answer = await self._ask(request)
                text = answers.text(answer)
            except RequestRefused:
                raise
            except (ModelError, OutOfCredit) as error:
                self._broken = error
                raise
            counted = answers.tokens(answer)
            tokens = counted or Tokens(_estimates(request), estimated_tokens(len(text)))
            usd = cost(self._price, tokens)
            spent = Usage(1, 0, tokens.prompt, tokens.completion, usd, tokens.cached, tokens.reasoning)
            self._ledger.add(stage, replace(spent, empty=not text.strip(), cut=answers.is_cut(answer)))
        prompt, completion = (counted.prompt, counted.completion) if counted is not None else (None, None)
        return Completion(text, prompt, completion, usd, key=key)

    async def _ask(self, request: JSON) -> JSON:
        attempt = 1
        while True:
            before = self._went_well
            async with self._pace.turn() as began:
                if self._broken is not None:  # since this call began to wait
                    raise self._broken
                outcome = await self._attempt(request, attempt, began)
            if isinstance(outcome, float):
                await self._clock.sleep(outcome)
            elif outcome is not None:
                return outcome
            elif self._went_well > before:
                # A limit that lets other calls through is no standstill: only that uses patience up.
                continue
            attempt += 1

    async def _attempt(self, request: JSON, attempt: int, began: float) -> JSON | float | None:
        """Return the answer, how long to wait before the next attempt, or None where all calls wait together.

        ModelError when there is no other attempt to make.
        """
        sent = {k: v for k, v in request.items() if k not in self._refused}
        try:
            answer = await self._at_endpoint(sent)
        except Failure as failure:
            if self._learns_from(failure, sent):
                return await self._attempt(request, attempt, began)
            less = await self._asked_for_less(failure, sent)
            return less if less is not None else self._next(failure, attempt, began)
        self._taken |= sent.keys()
        self._went_well += 1
        self._pace.went_well()
        return answer

    async def _at_endpoint(self, sent: JSON) -> JSON:
        """Return the answer. Until it is remembered, the calling task is among those that are paid for.

        OutOfCredit where the endpoint says so, Failure for any other refusal.
        """
        task = asyncio.current_task()
        assert task is not None
        self._paid.add(task)
        task.add_done_callback(self._paid.discard)
        try:
            return await self._endpoint.ask(sent)
        except Failure as failure:
            self._paid.discard(task)
            if failure.broke:
                raise OutOfCredit(
                    f"{self.name}: {failure}; the account behind this model's api_key has no money left: top it up, or "
                    "set another api_key; finished calls are kept, and the same command goes on from there"
                ) from failure
            raise

    def _next(self, failure: Failure, attempt: int, began: float) -> float | None:
        """Return how long to wait before the next attempt, see `_attempt`."""
        wait = self._wait(failure, attempt)
        if not failure.passing or attempt >= self._patience.attempts or wait > _LONGEST_WAIT:
            raise self._error(failure, attempt) from failure
        if failure.status != _LIMITED:
            return wait
        # The limit is one for all calls: they wait together, and this one with them.
        self._pace.refused(wait, began=began)
        return None

    def _learns_from(self, failure: Failure, sent: JSON) -> bool:
        """Note which optional members a refusal names; whether the request can be tried without them."""
        if failure.status not in OF_THIS_REQUEST:
            return False
        named = {name for name in OPTIONAL if name in sent and name in str(failure)}
        if "response_format" in sent and "json_schema" in str(failure):
            named.add("response_format")
        self._refused |= named
        return bool(named)

    async def _asked_for_less(self, failure: Failure, sent: JSON) -> JSON | None:
        """Return the answer to a refused request without its optional members, given up one after the other.

        None when that does not help. What the endpoint has taken before is not what it refuses.
        """
        if failure.status not in PERHAPS_OPTIONAL:
            return None
        given_up: set[str] = set()
        for name in (name for name in OPTIONAL if name in sent and name not in self._taken):
            given_up.add(name)
            try:
                answer = await self._at_endpoint({k: v for k, v in sent.items() if k not in given_up})
            except Failure:
                continue
            self._refused |= given_up
            return answer
        return None

    def _wait(self, failure: Failure, attempt: int) -> float:
        if failure.limits.wait is not None:
            return failure.limits.wait
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
        return Completion(row["text"], row.get("prompt_tokens"), row.get("completion_tokens"), 0.0, True, key)

    async def _remember(self, key: str, completion: Completion) -> None:
        if self._memo is None:
            return
        row = {
            "text": completion.text,
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
        }
        await self._memo.put(key, json.dumps(row))


def _estimates(request: JSON) -> int:
    return estimated_tokens(sum(len(str(message.get("content"))) for message in request["messages"]))
