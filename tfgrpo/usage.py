"""What calls of models cost: prices, a ledger by stage, and the budget that ends a run before it overspends.

It makes no call. A price that is not known stays unknown; it is never taken for nothing.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tfgrpo.configuration import Model, Price
from tfgrpo.errors import BudgetExceeded, UsageError

MILLION: Final = 1_000_000
CHARACTERS_PER_TOKEN: Final = 4
"""A rough count for an endpoint that gives none, so that a budget in tokens still ends."""

_TABLE: Final = "model_prices_and_context_window_backup.json"
_PREFIX_OF_HOST: Final = {
    "api.openai.com": "",
    "api.anthropic.com": "",
    "api.deepseek.com": "deepseek/",
    "api.groq.com": "groq/",
    "api.mistral.ai": "mistral/",
    "api.together.xyz": "together_ai/",
    "api.x.ai": "xai/",
    "openrouter.ai": "openrouter/",
}


FIRST_GUESS: Final = 1_000
"""Tokens set aside for the answer of a call while none of its stage has come."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What one call took. `cached` are among those of the prompt, `reasoning` among those of the completion."""

    prompt: int
    completion: int
    cached: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Tokens both ways."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls of one stage. `calls` were paid; `replayed` came from the memo and cost nothing.

    `usd` is None once a call was made whose price is not known. `empty` answers said nothing, `cut` ones met the
    endpoint's limit of length.
    """

    calls: int = 0
    replayed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = 0.0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    empty: int = 0
    cut: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of paid calls, both ways."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def remark(self) -> str | None:
        """What to tell of paid answers that said nothing, or not all; None where there are none."""
        said = [f"{self.empty} were empty"] if self.empty else []
        said += [f"{self.cut} were cut off at a limit of length: give the model more tokens"] if self.cut else []
        return f"of {self.calls} answers {' and '.join(said)}" if said else None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.replayed + other.replayed,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.empty + other.empty,
            self.cut + other.cut,
        )


class Ledger:
    """Adds up usage by stage, and lets no call begin that the budget may not bear.

    What a call will take is set aside while it runs: its prompt by its length, its answer by the longest of its stage
    so far. A call that does not fit beside those in flight waits for them; alone, it begins while anything is left.
    So a budget can be passed by one call, and by what calls in flight take beyond their estimates.
    """

    def __init__(self, *, max_usd: float | None = None, max_tokens: int | None = None) -> None:
        self._max_usd = max_usd
        self._max_tokens = max_tokens
        self._stages: dict[str, Usage] = {}
        self._longest: dict[str, int] = {}
        self._set_aside: list[tuple[int, float]] = []
        self._ended = asyncio.Condition()

    @property
    def bounds_money(self) -> bool:
        """Whether a sum of money was given as a limit."""
        return self._max_usd is not None

    @asynccontextmanager
    async def room(self, stage: str, prompt_tokens: int, price: Price | None) -> AsyncIterator[None]:
        """Set aside what a call may take, for as long as the body runs.

        Raises:
            BudgetExceeded: nothing more may be spent.
        """
        if self._max_usd is None and self._max_tokens is None:
            yield
            return
        self.check()
        tokens = Tokens(prompt_tokens, self._longest.get(stage, FIRST_GUESS))
        mine = (tokens.total, cost(price, tokens) or 0.0)
        async with self._ended:
            while self._set_aside and not self._bears(mine):
                await self._ended.wait()
                self.check()
            self._set_aside.append(mine)
        try:
            yield
        finally:
            self._set_aside.remove(mine)
            async with self._ended:
                self._ended.notify_all()

    def _bears(self, call: tuple[int, float]) -> bool:
        total = self.total()
        tokens = total.tokens + call[0] + sum(tokens for tokens, _ in self._set_aside)
        usd = (total.usd or 0.0) + call[1] + sum(usd for _, usd in self._set_aside)
        enough = self._max_tokens is None or tokens <= self._max_tokens
        return enough and (self._max_usd is None or usd <= self._max_usd)

    def check(self) -> None:
        """Raise BudgetExceeded when nothing more may be spent."""
        total = self.total()
        if self._max_tokens is not None and total.tokens >= self._max_tokens:
            raise BudgetExceeded(
                f"{total.tokens} of {self._max_tokens} tokens are used up; finished calls are kept: "
                "run it again with a larger --max-tokens to go on"
            )
        if self._max_usd is not None and total.usd is not None and total.usd >= self._max_usd:
            raise BudgetExceeded(
                f"${total.usd:.4f} of ${self._max_usd:g} are used up; finished calls are kept: "
                "run it again with a larger --max-usd to go on"
            )

    def add(self, stage: str, usage: Usage) -> None:
        """Count `usage` under `stage`."""
        if usage.calls:
            self._longest[stage] = max(self._longest.get(stage, 0), usage.completion_tokens // usage.calls)
        self._stages[stage] = self._stages.get(stage, Usage()) + usage

    def stages(self) -> dict[str, Usage]:
        """Return the usage of each stage, in the order of first use."""
        return dict(self._stages)

    def total(self) -> Usage:
        """Return the usage of all stages together."""
        return sum(self._stages.values(), Usage())


def price_of(model: Model) -> Price | None:
    """Return what `model` costs: its configured price, else the published one, else None.

    A published price counts only where the model is served by its provider: a local server may carry any name.
    """
    if model.price is not None or model.model is None:
        return model.price
    prefix = "" if model.base_url is None else _PREFIX_OF_HOST.get(urlsplit(model.base_url).hostname or "")
    return None if prefix is None else _published(prefix + model.model)


def require_price(model: Model) -> None:
    """Raise UsageError when money is to bound a run of a model whose price nobody knows."""
    if price_of(model) is None:
        raise UsageError(
            f"no price is known for {model.model}: give training.*.price {{prompt, completion}} in dollars a "
            "million tokens, or bound the run with --max-tokens",
            field="max_usd",
        )


def cost(price: Price | None, tokens: Tokens) -> float | None:
    """Return dollars, None when the price is not known."""
    if price is None:
        return None
    cached = price.prompt if price.cached is None else price.cached
    reasoning = price.completion if price.reasoning is None else price.reasoning
    prompt = price.prompt * (tokens.prompt - tokens.cached) + cached * tokens.cached
    completion = price.completion * (tokens.completion - tokens.reasoning) + reasoning * tokens.reasoning
    return (prompt + completion) / MILLION


def money(usd: float | None) -> str:
    """Return an amount as people read it."""
    return "unknown" if usd is None else f"${usd:.4f}"


def as_json(usage: Usage) -> dict[str, Any]:
    """Return usage as the results of runs show it."""
    return {
        "calls": usage.calls,
        "replayed": usage.replayed,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "empty": usage.empty,
        "cut": usage.cut,
        "usd": usage.usd,
    }


def estimated_tokens(characters: int) -> int:
    """Return roughly how many tokens a text of so many characters has."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def _published(name: str) -> Price | None:
    # litellm's table is read as a file: importing litellm takes seconds and 200 MB.
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return None
    table = Path(spec.submodule_search_locations[0]) / _TABLE
    if not table.is_file():
        return None
    row = json.loads(table.read_text(encoding="utf-8")).get(name, {})
    prompt, completion = _dollars(row, "input_cost_per_token"), _dollars(row, "output_cost_per_token")
    if prompt is None or completion is None:
        return None
    return Price(
        prompt=prompt,
        completion=completion,
        cached=_dollars(row, "cache_read_input_token_cost"),
        reasoning=_dollars(row, "output_cost_per_reasoning_token"),
    )


def _dollars(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    return value * MILLION if isinstance(value, int | float) and value >= 0 else None
