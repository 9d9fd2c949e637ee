from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.tfgrpo.scripted import completion, serving
from tests.tfgrpo.test_llm import HELLO, llm
from tfgrpo.configuration import Model, Price
from tfgrpo.errors import BudgetExceeded, UsageError
from tfgrpo.llm import Completion
from tfgrpo.usage import Ledger, price_of


async def test_a_budget_in_tokens_ends_before_the_next_call() -> None:
    ledger = Ledger(max_tokens=15)
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(), ledger=ledger) as model:
        await model.complete(HELLO, stage="s")
        with pytest.raises(BudgetExceeded, match="15 tokens"):
            await model.complete(HELLO, stage="s")
    assert len(endpoint.requests) == 1


async def test_a_budget_in_money_needs_a_price() -> None:
    with pytest.raises(UsageError, match="price"):
        llm(Model(model="unheard-of", base_url="http://127.0.0.1:9/v1"), ledger=Ledger(max_usd=1.0))


async def test_money_is_counted_by_the_configured_price() -> None:
    ledger = Ledger(max_usd=1.0)
    price = Price(prompt=1_000.0, completion=2_000.0)
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(price=price), ledger=ledger) as model:
        await model.complete(HELLO, stage="s")
    assert ledger.total().usd == pytest.approx(0.02)


async def test_money_without_a_price_is_unknown() -> None:
    ledger = Ledger()
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(), ledger=ledger) as model:
        await model.complete(HELLO, stage="s")
    assert ledger.total().usd is None


async def test_tokens_that_are_not_reported_are_estimated_for_the_budget() -> None:
    ledger = Ledger()
    answer = {k: v for k, v in completion("12345678").items() if k != "usage"}
    async with serving(lambda _: answer) as endpoint, llm(endpoint.model(), ledger=ledger) as model:
        said = await model.complete(HELLO, stage="s")
    assert (said.prompt_tokens, ledger.total().completion_tokens) == (None, 2)


def test_a_published_price_is_known_for_the_providers_own_endpoint() -> None:
    assert price_of(Model(model="gpt-4o-mini", base_url="https://api.openai.com/v1")) is not None


def test_a_local_server_may_carry_a_famous_name_without_its_price() -> None:
    assert price_of(Model(model="gpt-4o-mini", base_url="http://127.0.0.1:1/v1")) is None


async def test_a_budget_is_passed_by_no_more_than_one_call_whatever_runs_at_once() -> None:
    ledger = Ledger(max_tokens=70)
    async with serving(lambda _: "hi") as endpoint, llm(endpoint.model(), ledger=ledger, concurrency=8) as model:
        calls = (model.complete([{"role": "user", "content": str(n)}], stage="s") for n in range(30))
        ended = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(one) for one in ended} == {Completion, BudgetExceeded}
    assert 70 <= ledger.total().tokens < 70 + 15


async def test_tokens_that_were_cached_or_thought_cost_what_their_price_says() -> None:
    ledger = Ledger()
    said = completion("hi") | {
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 3},
        }
    }
    price = Price(prompt=1e6, completion=1e7, cached=1e5, reasoning=1e8)
    async with serving(lambda _: said) as endpoint, llm(endpoint.model(price=price), ledger=ledger) as model:
        await model.complete(HELLO, stage="s")
    total = ledger.total()
    assert (total.cached_tokens, total.reasoning_tokens) == (4, 3)
    assert total.usd == pytest.approx(6 + 0.4 + 20 + 300)


async def test_thoughts_alone_are_an_empty_answer_and_a_cut_one_is_counted() -> None:
    ledger = Ledger()
    message = {"role": "assistant", "content": None, "reasoning_content": "Let me see"}
    said = completion("") | {"choices": [{"index": 0, "finish_reason": "length", "message": message}]}
    async with serving(lambda _: said) as endpoint, llm(endpoint.model(), ledger=ledger) as model:
        assert (await model.complete(HELLO, stage="s")).text == ""
    assert (ledger.total().empty, ledger.total().cut) == (1, 1)
    assert ledger.total().remark == (
        "of 1 answers 1 were empty and 1 were cut off at a limit of length: give the model more tokens"
    )


def test_a_configured_price_needs_no_table_and_no_price_needs_litellm() -> None:
    asked = "import sys; from tfgrpo.usage import price_of; from tfgrpo.configuration import Model; "
    asked += "print(price_of(Model(model='gpt-4o-mini')).prompt, 'litellm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)  # noqa: S603
    assert done.stdout.split() == ["0.15", "False"]
