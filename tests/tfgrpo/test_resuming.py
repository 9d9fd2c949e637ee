"""A run that ends early, by its budget or by a kill, goes on without paying again and comes to the same library."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.tfgrpo.scripted import JSON, Reply, serving
from tests.tfgrpo.test_main import ended, result, run, started, tasks
from tests.tfgrpo.test_trainer import optimizer

AT_ONCE = 8


def reply(request: JSON) -> Reply:
    """Right or wrong by the sample's seed; else an optimizer. The same request has the same answer."""
    if request["model"] != "policy":
        return optimizer(request)
    return "Answer: yes" if request["seed"] % 2 else "Answer: no"


def counting(asked: Counter[str], seen: Callable[[int], None] = lambda _: None) -> Callable[[JSON], Reply]:
    def counted(request: JSON) -> Reply:
        asked[json.dumps(request, sort_keys=True)] += 1
        seen(asked.total())
        return reply(request)

    return counted


def training(home: Path, *more: str) -> tuple[str, ...]:
    return ("train", "--set", "s", "--from", "dataset", "--data", tasks(home, 6), "--grader", "exact", *more)


def whole_home(home: Path) -> Path:
    (home / "whole").mkdir()
    return home / "whole"


async def undisturbed(home: Path) -> tuple[Any, int]:
    """Return the library of a run that nothing ends, and how many calls it takes."""
    asked: Counter[str] = Counter()
    async with serving(counting(asked)) as endpoint:
        made = await result(home, *training(home), endpoint=endpoint)
    return made["experiences"], asked.total()


async def test_a_larger_budget_goes_on_where_a_smaller_one_ended(tmp_path: Path) -> None:
    whole, calls = await undisturbed(whole_home(tmp_path))
    asked: Counter[str] = Counter()
    async with serving(counting(asked)) as endpoint:
        for budget in (calls * 3, calls * 7):  # of the 15 tokens that a call takes
            code, _, err = await run(tmp_path, *training(tmp_path, "--max-tokens", str(budget)), endpoint=endpoint)
            assert (code, "--max-tokens" in err) == (3, True)
        made = await result(tmp_path, *training(tmp_path, "--max-tokens", "1000000"), endpoint=endpoint)
    assert (made["experiences"], asked.total(), max(asked.values())) == (whole, calls, 1)


async def test_a_run_killed_anywhere_repeats_only_what_was_in_flight(tmp_path: Path) -> None:
    whole, calls = await undisturbed(whole_home(tmp_path))
    asked: Counter[str] = Counter()
    running: list[asyncio.subprocess.Process] = []
    # So far apart that what is in flight at the first does not reach the second.
    moments = [random.randrange(3, calls // 2), random.randrange(calls // 2 + AT_ONCE, calls)]  # noqa: S311
    kills = len(moments)

    def seen(total: int) -> None:
        if len(moments) > kills - len(running) and total >= moments[0]:
            moments.pop(0)
            running[-1].kill()

    async with serving(counting(asked, seen)) as endpoint:
        for _ in range(kills):
            running.append(await started(tmp_path, *training(tmp_path), endpoint=endpoint))
            await ended(running[-1])
        made = await result(tmp_path, *training(tmp_path), endpoint=endpoint)
    assert made["experiences"] == whole
    assert (max(asked.values()) <= 1 + kills, asked.total() - calls <= kills * AT_ONCE) == (True, True)
    assert len(asked) == calls
