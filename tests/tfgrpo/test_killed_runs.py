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

import pytest

from tests.tfgrpo.scripted import JSON, Reply, serving, stage
from tests.tfgrpo.test_main import ended, result, started, tasks
from tests.tfgrpo.test_quorum_runs import optimizer as fooled
from tests.tfgrpo.test_resuming import reply
from tests.tfgrpo.test_teaching import record
from tfgrpo.store import Store

TASKS = 20
ONE_BY_ONE = {"concurrency": 1}
"""So that a call that was answered is remembered before the next one is made."""
SHORT = {"epochs": 2, "group_size": 2}
WITHOUT_END = "SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)"
REMEMBERING = "INSERT ON pending"
STORING = "INSERT ON versions"
DEPLOYING = "INSERT ON history"
FINISHING = "UPDATE ON runs WHEN NEW.status = 'finished'"
TRAFFIC = ("train", "--set", "s")
REPLAY = (*TRAFFIC, "--from", "replay", "--grader", "exact")


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

    def __init__(self, reply: Callable[[JSON], Reply] = reply) -> None:
        self.answered: list[JSON] = []
        self.on: Callable[[], bool] = lambda: False
        self.reply = reply

    def __call__(self, request: JSON) -> Reply:
        if not self.on():
            self.answered.append(request)
        return self.reply(request)

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


async def firsts(home: Path, arguments: tuple[str, ...], script: Script) -> tuple[list[int], JSON]:
    """Return at which calls a run that nothing ends comes to another stage and to its last, and its result."""
    async with serving(script) as endpoint:
        made = await result(home, *arguments, endpoint=endpoint)
    stages = [stage_of(one) for one in script.answered]
    changes = (at for at, (a, b) in enumerate(itertools.pairwise(stages), 1) if a != b)
    return [0, *changes, len(stages) - 1], made


async def killed_at(home: Path, arguments: tuple[str, ...], calls: list[int], script: Script) -> JSON:
    """Kill a run as each of these calls arrives, each time begun again; return the result of the last, which ends."""
    async with serving(script) as endpoint:
        for at in calls:
            process = await started(home, *arguments, endpoint=endpoint)
            script.on = killing(process, at, script)
            assert (await ended(process))[0] == -9
        script.on = lambda: False
        made: JSON = await result(home, *arguments, endpoint=endpoint)
    return made


async def test_killed_at_each_stage_it_repeats_nothing_and_comes_to_the_same(tmp_path: Path) -> None:
    alone, script = Script(), Script()
    whole, home = made_home(tmp_path / "whole", **SHORT), made_home(tmp_path / "killed", **SHORT)
    calls, expected = await firsts(whole, training(whole), alone)
    made = await killed_at(home, training(home), calls, script)
    assert {stage_of(one) for one in alone.answered} >= {"policy", "contrast", "propose", "consolidate"}
    assert (script.twice(), len(script.answered)) == ([], len(alone.answered))
    assert made["experiences"] == expected["experiences"]
    assert await left(home) == ([texts(made)], {"finished": 1, "failed": len(calls)})


async def test_killed_while_it_learns_from_traffic_it_repeats_nothing_and_comes_to_the_same(tmp_path: Path) -> None:
    alone, script = Script(fooled), Script(fooled)
    calls, expected = await firsts(with_traffic(made_home(tmp_path / "whole")), TRAFFIC, alone)
    home = with_traffic(made_home(tmp_path / "killed"))
    made = await killed_at(home, TRAFFIC, calls, script)
    # The second time groups propose, they say what they think of each new entry: that confirms it.
    stages = [name for name, _ in itertools.groupby(stage_of(one) for one in alone.answered)]
    assert stages[-3:] == ["propose", "consolidate", "propose"]
    assert (script.twice(), len(script.answered)) == ([], len(alone.answered))
    assert (made["experiences"], made["pending"]) == (expected["experiences"], expected["pending"])
    assert await left(home) == ([texts(made)], {"finished": 1, "failed": len(calls)})


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


def with_traffic(home: Path) -> Path:
    """Record three groups of two keys that teach one lesson, and one of a third key that teaches another."""
    for key, count, first, said in (("ann", 2, 0, ""), ("ben", 1, 2, ""), ("mallory", 1, 3, "poison")):
        record(home, "default", "s", key=key, tasks=count, first=first, said=said)
    return home


def with_much_traffic(home: Path) -> Path:
    """Record so much that what is left for training makes a version."""
    for number, key in enumerate(("ann", "ben")):
        record(home, "default", "s", key=key, tasks=6, first=6 * number)
    return home


def below_the_quorum(home: Path) -> Path:
    """Record what makes no version."""
    record(home, "default", "s", key="ann", tasks=2)
    return home


@pytest.mark.parametrize(
    ("moment", "prepare", "arguments"),
    [
        pytest.param(REMEMBERING, with_traffic, TRAFFIC, id="as it remembers what is pending"),
        pytest.param(STORING, with_much_traffic, REPLAY, id="as it stores a version"),
        pytest.param(DEPLOYING, with_traffic, (*TRAFFIC, "--deploy"), id="as it deploys"),
        pytest.param(FINISHING, with_traffic, (*TRAFFIC, "--deploy"), id="as it ends"),
        pytest.param(FINISHING, below_the_quorum, TRAFFIC, id="as it ends without a version"),
    ],
)
async def test_killed_as_it_leaves_what_it_learned_it_leaves_nothing(
    tmp_path: Path, moment: str, prepare: Callable[[Path], Path], arguments: tuple[str, ...]
) -> None:
    home, script = prepare(made_home(tmp_path / "home")), Script(fooled)
    before = await contents(home)
    with closing(sqlite3.connect(database(home))) as own:
        own.execute(f"CREATE TRIGGER stuck BEFORE {moment} BEGIN {WITHOUT_END}; END")
    async with serving(script) as endpoint:
        process = await started(home, *arguments, endpoint=endpoint)
        await asyncio.wait_for(stuck(home), 60)
        process.kill()
        await ended(process)
        with closing(sqlite3.connect(database(home))) as own:
            own.execute("DROP TRIGGER stuck")
        paid, remains = len(script.answered), await contents(home)
        made = await result(home, *arguments, endpoint=endpoint)
    assert (remains, len(script.answered) - paid, script.twice()) == (before, 0, [])
    assert await contents(home) == (
        [made["version"]] if made["version"] else [],
        [one["text"] for one in made["pending"]],
        made["version"] if "--deploy" in arguments else None,
    )
    assert (await left(home))[1] == {"finished": 1, "failed": 1}


async def contents(home: Path) -> tuple[list[int], list[str], int | None]:
    """Return what a store holds of a set: its versions, what is pending, what is live."""

    def read() -> tuple[list[int], list[str], int | None]:
        with closing(Store.open(f"sqlite:///{database(home)}")) as store:
            versions = [one.version for one in store.sets.versions("s")]
            deployed = store.sets.deployment("s")
            return versions, [one.text for one in store.pending.of("s")], deployed.live if deployed else None

    return await asyncio.to_thread(read)
