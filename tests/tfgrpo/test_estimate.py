"""`tfgrpo estimate` against what `tfgrpo train` with the same arguments then takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.tfgrpo.scripted import serving
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import record, result, run
from tests.tfgrpo.test_resuming import reply, training


def priced(place: Path, url: str) -> Path:
    """Write a configuration in which both models have a price."""
    price = {"prompt": 1.0, "completion": 2.0}
    models = {role: {"model": role, "base_url": url, "price": price} for role in ("policy", "optimizer")}
    path = place / "priced.json"
    path.write_text(json.dumps({"training": models}))
    return path


def within(value: float, both: list[float]) -> bool:
    return both[0] <= value <= both[1]


def as_estimate(arguments: tuple[str, ...]) -> tuple[str, ...]:
    return ("estimate", *arguments[1:])


async def test_the_calls_that_are_known_are_exact_and_no_model_is_asked(tmp_path: Path) -> None:
    arguments = training(tmp_path)
    async with serving(reply) as endpoint:
        told = await result(tmp_path, *as_estimate(arguments), endpoint=endpoint)
        assert endpoint.requests == []
        made = await result(tmp_path, *arguments, endpoint=endpoint)
    used: dict[str, Any] = made["usage"]
    assert told["stages"]["rollout"]["calls"] == [used["rollout"]["calls"]] * 2
    assert within(used["contrast"]["calls"], told["stages"]["contrast"]["calls"])
    assert within(used["total"]["calls"], told["total"]["calls"])


async def test_recorded_groups_are_counted_one_by_one(home: Path) -> None:
    record(home, tasks=3)
    async with serving(reply) as endpoint:
        told = await result(home, "estimate", "--set", "s", endpoint=endpoint)
        made = await result(home, "train", "--set", "s", endpoint=endpoint)
    for stage in ("contrast", "propose", "consolidate"):
        assert told["stages"][stage]["calls"] == [made["usage"][stage]["calls"]] * 2
    # Short answers are their own summaries, so what is contrasted is known to the letter.
    assert len(set(told["stages"]["contrast"]["prompt_tokens"])) == 1


async def test_a_price_that_nobody_knows_is_said_and_not_guessed(home: Path) -> None:
    record(home, tasks=2)
    async with serving(reply) as endpoint:
        told = await result(home, "estimate", "--set", "s", endpoint=endpoint)
        code, out, _ = await run(home, "estimate", "--set", "s", endpoint=endpoint)
    assert (code, told["total"]["usd"], "training.optimizer.price" in out) == (0, None, True)


async def test_money_is_a_range_by_the_configured_price(home: Path) -> None:
    record(home, tasks=2)
    async with serving(reply) as endpoint:
        told = await result(home, "estimate", "--set", "s", "--config", str(priced(home, endpoint.url)))
    total = told["total"]
    low = (total["prompt_tokens"][0] * 1.0 + total["completion_tokens"][0] * 2.0) / 1e6
    assert abs(total["usd"][0] - low) < 1e-9 < total["usd"][1] - total["usd"][0]


async def test_a_judge_is_counted_and_not_asked(tmp_path: Path) -> None:
    arguments = [*as_estimate(training(tmp_path))]
    arguments[arguments.index("exact")] = "judge"
    settings = {"training": {"grader": {"name": "judge", "rubric": "Is it right?"}}}
    (tmp_path / "judge.json").write_text(json.dumps(settings))
    async with serving(reply) as endpoint:
        told = await result(tmp_path, *arguments, "--config", str(tmp_path / "judge.json"), endpoint=endpoint)
        assert endpoint.requests == []
    assert told["stages"]["judge"]["calls"] == told["stages"]["rollout"]["calls"]
