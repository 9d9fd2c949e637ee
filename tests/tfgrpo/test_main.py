"""The command line as a user runs it: real processes, a real store, a real endpoint."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.scripted import JSON, Endpoint, Reply, refusal, serving
from tests.tfgrpo.test_trainer import optimizer
from tfgrpo.library import from_texts
from tfgrpo.store import Batch, Store
from tfgrpo.types import Assignment, Bodies, Exchange, Label

ROOT = Path(__file__).parents[2]


def url(home: Path) -> str:
    return f"sqlite:///{home}/data/tfgrpo.db"


ONE_GROUP = {"min_groups": 1, "min_principals": 1}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return prepared(tmp_path)


@pytest.fixture
def spared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another store, whose run nobody kills."""
    return prepared(tmp_path_factory.mktemp("spared"))


def prepared(home: Path) -> Path:
    """Make a store where one group suffices: each task teaches another lesson here."""
    Store.open(url(home), migrate=True).close()
    (home / "config.yaml").write_text(json.dumps({"safety": ONE_GROUP}))
    return home


def record(home: Path, *, tasks: int, set_name: str | None = "s", rewards: tuple[float, ...] = (1.0, 0.0)) -> None:
    """Log `tasks` tasks with a labelled rollout for each reward."""
    exchanges, assignments, labels = [], [], []
    for number in range(tasks):
        for index, reward in enumerate(rewards):
            name, now = f"t{number}-{index}", time.time()
            asked = {"model": "m", "messages": [{"role": "user", "content": f"task {number}"}]}
            said = {"role": "assistant", "content": "did this" if reward else "did that"}
            answer = {"id": f"c-{name}", "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}
            exchange = Exchange(
                f"x-{name}", "default", set_name, 0, "none", name, f"g{number:02}", "chat", "POST", "/chat/completions",
                "m", "u", "", "complete", 200, now, now, now, completion_id=f"c-{name}",
            )  # fmt: skip
            bodies = Bodies(json.dumps(asked).encode(), json.dumps(answer).encode(), response_type="application/json")
            exchanges.append((exchange, bodies))
            assignments.append(Assignment(name, "default", set_name, 0, "none", None, 0, f"g{number:02}", "m", now))
            labels.append(Label(f"l-{name}", "default", exchange.id, None, 0, "reward", reward, "user", "", now))
    store = Store.open(url(home))
    store.traffic.add(Batch(exchanges=tuple(exchanges), assignments=tuple(assignments)))
    store.labels.add(labels)
    store.close()


def version(home: Path, *texts: str) -> None:
    store = Store.open(url(home))
    store.sets.add_version("s", from_texts(texts, next_id=store.sets.next_id("s")), status="by hand")
    store.close()


def tasks(home: Path, count: int = 8) -> str:
    path = home / "tasks.jsonl"
    path.write_text("".join(json.dumps({"question": f"task {n}", "answer": "yes"}) + "\n" for n in range(count)))
    return str(path)


async def started(home: Path, *arguments: str, endpoint: Endpoint | None = None) -> asyncio.subprocess.Process:
    own = {"PYTHONPATH": str(ROOT), "TFGRPO_STORE__URL": url(home)}
    if endpoint is not None:
        for role in ("POLICY", "OPTIMIZER"):
            own |= {f"TFGRPO_TRAINING__{role}__MODEL": role.lower(), f"TFGRPO_TRAINING__{role}__BASE_URL": endpoint.url}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TFGRPO_")}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tfgrpo", *arguments, cwd=home, env=inherited | own, stdout=-1, stderr=-1
    )


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, out.decode(), err.decode()


async def run(home: Path, *arguments: str, endpoint: Endpoint | None = None) -> tuple[int, str, str]:
    return await ended(await started(home, *arguments, endpoint=endpoint))


async def result(home: Path, *arguments: str, endpoint: Endpoint | None = None) -> Any:
    code, out, err = await run(home, *arguments, "--json", endpoint=endpoint)
    assert code == 0, err
    return json.loads(out)


def policy(request: JSON) -> Reply:
    """Right where its prompt holds a lesson; else an optimizer."""
    if request["model"] != "policy":
        return optimizer(request)
    return "Answer: yes" if "Say yes." in request["messages"][0]["content"] else "Answer: no"


def held(release: asyncio.Event, reached: asyncio.Event, after: int) -> Callable[[JSON], Reply]:
    """Answer so many calls, then say that it is reached and refuse until released, so that the caller waits."""
    count = 0

    def reply(request: JSON) -> Reply:
        nonlocal count
        count += 1
        if count > after and not release.is_set():
            reached.set()
            return refusal(429, "busy", retry_after="100")
        return optimizer(request)

    return reply


async def test_help_loads_nothing_that_takes_long() -> None:
    shown = "import sys, tfgrpo.__main__ as m\ntry: m.main(['--help'])\nexcept SystemExit: print(sorted(sys.modules))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", shown, cwd=ROOT, stdout=-1, stderr=-1)
    _, out, _ = await ended(process)
    assert "evaluate" in out
    assert not [name for name in ("litellm", "sqlalchemy", "pydantic", "aiohttp", "rich") if f"'{name}'" in out]


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("train",),
        ("train", "--set", "NOT A NAME"),
        ("train", "--set", "s", "--from", "replay"),
        ("train", "--set", "s", "--max-usd", "-1"),
        ("sets", "show", "s@x"),
        ("evaluate", "--set", "s", "--data", "x", "--k", "0"),
        ("train", "--set", "s"),
        ("evaluate", "--set", "s", "--data", "x", "--grader", "fuzzy"),
    ],
)
async def test_wrong_usage_is_one_line_and_exit_2(home: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = await run(home, *arguments)
    assert (code, out, err.count("\n"), err.startswith("tfgrpo")) == (2, "", 1, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("sets", "show", "absent"),
        ("sets", "deploy", "s@7"),
        ("sets", "rollback", "absent"),
        ("runs", "show", "absent"),
        ("evaluate", "--set", "s", "--data", "absent.jsonl", "--grader", "exact"),
    ],
)
async def test_a_failure_is_one_line_and_exit_1(home: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = await run(home, *arguments)
    assert (code, out, err.count("\n"), err.startswith("tfgrpo")) == (1, "", 1, True)


async def test_a_store_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    code, _, err = await run(tmp_path, "sets", "list")
    assert (code, err.count("\n")) == (1, 1)


async def test_training_learns_from_labelled_traffic(home: Path) -> None:
    record(home, tasks=3)
    async with serving(optimizer) as endpoint:
        made = await result(home, "train", "--set", "s", endpoint=endpoint)
    assert [one["text"] for one in made["experiences"]] == [f"Keep{n} going{n}." for n in range(3)]
    assert (made["version"], made["status"], made["deployed"], made["policy_model"]) == (1, "unproven", False, "m")


async def test_training_deploys_only_when_asked_and_says_unproven(home: Path) -> None:
    record(home, tasks=2)
    async with serving(optimizer) as endpoint:
        code, out, _ = await run(home, "train", "--set", "s", "--deploy", endpoint=endpoint)
    (listed,) = await result(home, "sets", "list")
    assert (code, listed["live"], "unproven" in out) == (0, 1, True)


async def test_a_library_learns_from_a_group_once_unless_asked(home: Path) -> None:
    record(home, tasks=2)
    async with serving(optimizer) as endpoint:
        await result(home, "train", "--set", "s", "--deploy", endpoint=endpoint)
        code, _, err = await run(home, "train", "--set", "s", endpoint=endpoint)
        again = await result(home, "train", "--set", "s", "--reuse", "--seed", "1", endpoint=endpoint)
    assert (code, "--reuse" in err, again["parent"]) == (1, True, 1)


async def test_training_again_without_deploying_pays_nothing_and_makes_no_doublet(home: Path) -> None:
    record(home, tasks=2)
    async with serving(optimizer) as endpoint:
        first = await result(home, "train", "--set", "s", endpoint=endpoint)
        again = await result(home, "train", "--set", "s", endpoint=endpoint)
    assert (first["version"], again["version"], again["usage"]["total"]["calls"]) == (1, 1, 0)


async def test_ids_are_not_given_twice_within_a_set(home: Path) -> None:
    version(home, "One.", "Two.")
    record(home, tasks=1)
    async with serving(optimizer) as endpoint:
        made = await result(home, "train", "--set", "s", endpoint=endpoint)
    assert [one["id"] for one in made["experiences"]] == ["e3"]


async def test_traffic_under_no_set_is_used_and_said(home: Path) -> None:
    record(home, tasks=2, set_name=None)
    async with serving(optimizer) as endpoint:
        code, _, err = await run(home, "train", "--set", "s", endpoint=endpoint)
    assert (code, "under no set" in err) == (0, True)


async def test_traffic_that_does_not_contrast_is_refused_with_the_reasons(home: Path) -> None:
    record(home, tasks=4, rewards=(1.0, 1.0))
    async with serving(optimizer) as endpoint:
        code, _, err = await run(home, "train", "--set", "s", endpoint=endpoint)
    assert (code, "no group contrasts" in err, "4 do not: one reward" in err) == (1, True, True)


async def test_a_budget_that_runs_out_is_exit_3(home: Path) -> None:
    record(home, tasks=30)
    async with serving(optimizer) as endpoint:
        code, _, err = await run(home, "train", "--set", "s", "--max-tokens", "100", endpoint=endpoint)
    assert (code, "are kept" in err) == (3, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_run_says_what_is_kept_and_is_exit_130(home: Path, number: signal.Signals) -> None:
    record(home, tasks=3)
    reached = asyncio.Event()
    async with serving(held(asyncio.Event(), reached, after=2)) as endpoint:
        process = await started(home, "train", "--set", "s", endpoint=endpoint)
        await asyncio.wait_for(reached.wait(), 30)
        process.send_signal(number)
        code, _, err = await ended(process)
    assert (code, "finished calls are kept" in err) == (130, True)


async def test_a_killed_run_starts_again_at_once_and_pays_for_nothing_twice(home: Path, spared: Path) -> None:
    record(home, tasks=3)
    record(spared, tasks=3)
    reached, release = asyncio.Event(), asyncio.Event()
    async with serving(held(release, reached, after=4)) as endpoint:
        process = await started(home, "train", "--set", "s", endpoint=endpoint)
        await asyncio.wait_for(reached.wait(), 30)
        process.kill()
        await ended(process)
        release.set()
        made = await result(home, "train", "--set", "s", endpoint=endpoint)
        whole = await result(spared, "train", "--set", "s", endpoint=endpoint)
    # The three contrasts were finished before the fourth call was made.
    assert (made["usage"]["total"]["replayed"] >= 3, len(made["experiences"])) == (True, 3)
    assert made["experiences"] == whole["experiences"]


@pytest.mark.parametrize("offset", [0, 4096])
async def test_a_damaged_memo_ends_a_run_with_what_to_do_and_loses_nothing(home: Path, offset: int) -> None:
    record(home, tasks=3)
    async with serving(optimizer) as endpoint:
        made = await result(home, "train", "--set", "s", endpoint=endpoint)
        (file,) = await asyncio.to_thread(lambda: list(home.rglob("cache.db")))
        with file.open("r+b") as memo:
            memo.seek(offset)
            memo.write(os.urandom(file.stat().st_size - offset))
        code, _, err = await run(home, "train", "--set", "s", endpoint=endpoint)
        assert (code, "delete" in err, str(file.parent.name) in err, "Traceback" in err) == (1, True, True, False)
        store = Store.open(url(home))
        assert [one.version for one in store.sets.versions("s")] == [1]
        store.close()
        shutil.rmtree(file.parent)
        again = await result(home, "train", "--set", "s", endpoint=endpoint)
    assert again["experiences"] == made["experiences"]


async def test_one_training_runs_at_a_time_for_a_store(home: Path) -> None:
    record(home, tasks=3)
    reached = asyncio.Event()
    async with serving(held(asyncio.Event(), reached, after=0)) as endpoint:
        first = await started(home, "train", "--set", "s", endpoint=endpoint)
        await asyncio.wait_for(reached.wait(), 30)
        (running,) = await result(home, "runs", "list")
        code, _, err = await run(home, "train", "--set", "s", endpoint=endpoint)
        first.kill()
        await ended(first)
    assert (code, running["id"] in err) == (1, True)


async def test_groups_are_counted_with_reasons(home: Path) -> None:
    record(home, tasks=2)
    counted = await result(home, "groups", "--set", "s")
    assert (counted["trajectories"], counted["groups"], counted["contrasting"]) == (4, 2, 2)


async def test_groups_tell_people_what_to_do(home: Path) -> None:
    record(home, tasks=2, rewards=(1.0,))
    _, out, _ = await run(home, "groups")
    assert "2 do not: one rollout (ask such a task several times" in out


async def test_an_evaluation_gives_a_verdict_that_becomes_the_versions_status(home: Path) -> None:
    version(home, "Say yes.")
    async with serving(policy) as endpoint:
        found = await result(
            home, "evaluate", "--set", "s", "--data", tasks(home), "--grader", "exact", "--k", "2", endpoint=endpoint
        )
    shown = await result(home, "sets", "show", "s@1")
    assert (found["verdict"], found["difference"], shown["status"]) == ("helps", 1.0, "helps")


async def test_a_comparison_with_another_version_sets_no_status(home: Path) -> None:
    version(home, "Say yes.")
    version(home, "Say no.")
    async with serving(policy) as endpoint:
        asked = ("--set", "s@2", "--against", "s@1", "--data", tasks(home), "--grader", "exact", "--k", "1")
        found = await result(home, "evaluate", *asked, endpoint=endpoint)
    assert (found["verdict"], (await result(home, "sets", "show", "s@2"))["status"]) == ("hurts", "by hand")


async def test_versions_are_compared(home: Path) -> None:
    version(home, "One.")
    version(home, "Two.")
    found = await result(home, "sets", "diff", "s@1", "s@2")
    assert ([one["text"] for one in found["removed"]], [one["text"] for one in found["added"]]) == (["One."], ["Two."])


async def test_a_deployment_is_made_and_rolled_back(home: Path) -> None:
    version(home, "One.")
    version(home, "Two.")
    await result(home, "sets", "deploy", "s@1")
    made = await result(home, "sets", "deploy", "s@2", "--control", "0.25")
    back = await result(home, "sets", "rollback", "s")
    assert (made["live"], made["shares"], back["live"]) == (2, {"control": 0.25}, 1)


async def test_training_on_a_data_set_needs_no_proxy(tmp_path: Path) -> None:
    turns = itertools.cycle(["Answer: yes", "Answer: no"])

    def reply(request: JSON) -> Reply:
        return next(turns) if request["model"] == "policy" else optimizer(request)

    async with serving(reply) as endpoint:
        data = tasks(tmp_path, 2)
        asked = ("--from", "dataset", "--data", data, "--grader", "exact")
        made = await result(tmp_path, "train", "--set", "s", *asked, endpoint=endpoint)
    assert (made["version"], made["policy_model"]) == (1, "policy")


async def test_a_run_of_which_no_answer_could_be_used_fails_and_says_why(home: Path) -> None:
    record(home, tasks=2)
    async with serving(lambda _: "I would rather not.") as endpoint:
        code, _, err = await run(home, "train", "--set", "s", endpoint=endpoint)
    (failed,) = await result(home, "runs", "list")
    assert await result(home, "runs") == [failed]
    assert (code, "none of the optimizer's answers could be used" in err, failed["status"]) == (1, True, "failed")


async def test_what_shows_nothing_undoes_no_verdict(home: Path) -> None:
    version(home, "Say yes.")
    async with serving(policy) as endpoint:
        asked = ("evaluate", "--set", "s", "--grader", "exact", "--k", "1", "--data")
        await result(home, *asked, tasks(home), endpoint=endpoint)
        assert (await result(home, *asked, tasks(home, 1), endpoint=endpoint))["verdict"] == "no effect shown"
    assert (await result(home, "sets", "show", "s@1"))["status"] == "helps"


async def test_a_candidate_without_a_share_is_refused(home: Path) -> None:
    version(home, "One.")
    version(home, "Two.")
    code, _, err = await run(home, "sets", "deploy", "s@1", "--candidate", "2")
    assert (code, "--share" in err) == (2, True)
