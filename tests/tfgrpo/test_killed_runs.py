"""A training that is killed at any stage, run again, pays for no answer twice and leaves one version and one report."""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.scripted import JSON, Endpoint, Reply, serving, stage
from tests.tfgrpo.test_main import ended, result, started, tasks
from tests.tfgrpo.test_resuming import reply
from tfgrpo.store import Store

TASKS = 20
ONE_BY_ONE = {"concurrency": 1}
"""So that a call that was answered is remembered before the next one is made."""
SHORT = {"epochs": 2, "group_size": 2}
WITHOUT_END = "SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)"
STORING = f"CREATE TRIGGER stuck BEFORE INSERT ON versions BEGIN {WITHOUT_END}; END"
FINISHING = f"CREATE TRIGGER stuck BEFORE UPDATE ON runs WHEN NEW.status = 'finished' BEGIN {WITHOUT_END}; END"


def made_home(where: Path, **training: int) -> Path:
    where.mkdir()
    (where / "config.yaml").write_text(json.dumps({"training": ONE_BY_ONE | training}))
    (where / "data").mkdir()
    Store.open(f"sqlite:///{database(where)}", migrate=True).close()
    return where


def database(home: Path) -> Path:
    return home / "data" / "tfgrpo.db"


def training(home: Path, count: int = TASKS) -> tuple[str, ...]:
    return ("train", "--set", "s", "--from", "dataset", "--data", tasks(home, count), "--grader", "exact")


def stage_of(request: JSON) -> str:
    return "policy" if request["model"] == "policy" else stage(request)


class Script:
    """The endpoint's answers: which calls were answered, in order. `on` may kill the caller before an answer."""

    def __init__(self) -> None:
        self.answered: list[JSON] = []
        self.on: Callable[[], bool] = lambda: False

    def __call__(self, request: JSON) -> Reply:
        if not self.on():
            self.answered.append(request)
        return reply(request)

    def twice(self) -> list[str]:
        counted = Counter(json.dumps(one, sort_keys=True) for one in self.answered)
        return [body for body, times in counted.items() if times > 1]


def killing(process: asyncio.subprocess.Process, at: int, script: Script) -> Callable[[], bool]:
    """Kill the process as its call number `at` arrives, before it is answered."""

    def on() -> bool:
        if len(script.answered) != at:
            return False
        if process.returncode is None:
            process.kill()
        return True

    return on


async def left(home: Path) -> tuple[list[list[str]], Counter[str]]:
    """Return what a store holds in the end: the lessons of each version, and how runs ended."""
    store = await asyncio.to_thread(Store.open, f"sqlite:///{database(home)}")
    try:
        lessons = [[one.text for one in version.library.experiences] for version in store.sets.versions("s")]
        return lessons, Counter(run.status for run in store.runs.list())
    finally:
        store.close()


def texts(made: JSON) -> list[str]:
    return [one["text"] for one in made["experiences"]]


async def whole(home: Path, endpoint: Endpoint, script: Script) -> tuple[Any, list[JSON]]:
    """Return the library of a run that nothing ends, and its calls."""
    made = await result(home, *training(home), endpoint=endpoint)
    return made["experiences"], script.answered


async def test_killed_at_each_stage_it_repeats_nothing_and_comes_to_the_same(tmp_path: Path) -> None:
    alone = Script()
    async with serving(alone) as endpoint:
        expected, calls = await whole(made_home(tmp_path / "whole", **SHORT), endpoint, alone)
    stages = [stage_of(one) for one in calls]
    first_of_stage = [0, *(at for at, (a, b) in enumerate(itertools.pairwise(stages), 1) if a != b), len(calls) - 1]
    home, script = made_home(tmp_path / "killed", **SHORT), Script()
    async with serving(script) as endpoint:
        for at in first_of_stage:
            process = await started(home, *training(home), endpoint=endpoint)
            script.on = killing(process, at, script)
            assert (await ended(process))[0] == -9
        script.on = lambda: False
        made = await result(home, *training(home), endpoint=endpoint)
    assert set(stages) >= {"policy", "contrast", "propose", "consolidate"}
    assert (script.twice(), len(script.answered), made["experiences"]) == ([], len(calls), expected)
    assert await left(home) == ([texts(made)], {"finished": 1, "failed": len(first_of_stage)})


async def stuck(home: Path) -> None:
    """Return once a process holds the store's lock for longer than any write of its own takes."""

    def locked() -> bool:
        with closing(sqlite3.connect(database(home), timeout=3, isolation_level=None)) as own:
            try:
                own.execute("BEGIN IMMEDIATE")
                own.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return True
            return False

    while not await asyncio.to_thread(locked):
        pass


@pytest.mark.parametrize("trigger", [STORING, FINISHING], ids=["as it stores the version", "as it ends"])
async def test_killed_after_its_last_call_it_asks_nothing_again(tmp_path: Path, trigger: str) -> None:
    home, script = made_home(tmp_path / "home"), Script()
    with closing(sqlite3.connect(database(home))) as own:
        own.execute(trigger)
    async with serving(script) as endpoint:
        process = await started(home, *training(home, 6), endpoint=endpoint)
        await asyncio.wait_for(stuck(home), 60)
        process.kill()
        await ended(process)
        with closing(sqlite3.connect(database(home))) as own:
            own.execute("DROP TRIGGER stuck")
        paid = len(script.answered)
        made = await result(home, *training(home, 6), endpoint=endpoint)
    # Three epochs, so that prompts name the ids of entries.
    assert (len(script.answered) - paid, script.twice()) == (0, [])
    assert await left(home) == ([texts(made)], {"finished": 1, "failed": 1})
