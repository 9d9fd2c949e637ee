from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tfgrpo.agent import Agent
from tfgrpo.errors import UsageError
from tfgrpo.processes import NoAnswer
from tfgrpo.tasks import gather
from tfgrpo.types import Message, Task

HERE = "python:tests.tfgrpo.agents_sample"
TASK = Task("k", (Message("user", "hi"),))


def named(function: str, *, seconds: float = 30.0, at_once: int = 1) -> Agent:
    return Agent.load(f"{HERE}:{function}", seconds=seconds, at_once=at_once)


async def answers(agent: Agent, *tasks: Task, base_url: str = "") -> list[str]:
    try:
        return await gather(agent.answer(task, base_url, {"x-a": "b"}) for task in tasks)
    finally:
        await agent.close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return tmp_path


async def test_an_agent_is_found_beside_the_data(here: Path) -> None:
    (here / "beside_the_data.py").write_text("def ask(task, base_url, headers):\n    return 'hi'\n")
    assert await answers(Agent.load("python:beside_the_data:ask"), TASK) == ["hi"]


async def test_its_process_looks_in_the_same_order_as_we_do(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # There is another of this name beside our own package.
    (here / "benchmarks.py").write_text("def ask(task, base_url, headers):\n    return 'hi'\n")
    monkeypatch.syspath_prepend(here)
    assert await answers(Agent("python:benchmarks:ask"), TASK) == ["hi"]


@pytest.mark.parametrize("name", ["chatty", "python:", "python:module", "python::ask"])
def test_a_name_of_no_runner_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="chat or python:module:function"):
        Agent.load(name)


def test_a_module_that_is_not_there_is_named_with_the_places_that_were_looked_in(here: Path) -> None:
    with pytest.raises(UsageError) as refused:
        Agent.load("python:nowhere_at_all:ask")
    assert f"No module named 'nowhere_at_all'; looked in {here}" in str(refused.value)
    assert sys.prefix in str(refused.value)


def test_a_function_that_is_not_there_is_named(here: Path) -> None:
    (here / "without_it.py").write_text("")
    with pytest.raises(UsageError, match="no attribute 'ask'"):
        Agent.load("python:without_it:ask")


def test_a_module_that_raises_is_an_error_of_one_line(here: Path) -> None:
    (here / "raises_at_once.py").write_text("raise RuntimeError('no key\\nset')\n")
    with pytest.raises(UsageError, match="RuntimeError: no key set"):
        Agent.load("python:raises_at_once:ask")


@pytest.mark.parametrize("text", ["ask = 3", "def ask(task): ...", "def ask(task, base_url, headers, more): ..."])
def test_what_cannot_be_called_with_the_three_is_refused(here: Path, text: str) -> None:
    name = f"unfit_{abs(hash(text))}"
    (here / f"{name}.py").write_text(f"{text}\n")
    with pytest.raises(UsageError, match=r"a function of \(task, base_url, headers\)"):
        Agent.load(f"python:{name}:ask")


async def test_an_agent_is_given_a_task_the_address_and_headers() -> None:
    task = Task("k", (Message("user", "Who?"),), metadata={"row": 3}, tools=frozenset({"look"}))
    (said,) = await answers(named("shown"), task, base_url="http://x/v1")
    assert json.loads(said) == ["Task", "k", "Who?", {"row": 3}, "http://x/v1", "dict", {"x-a": "b"}, ["look"]]


async def test_an_agent_that_crashes_says_by_what() -> None:
    with pytest.raises(NoAnswer, match=r"the agent ended before it had answered: killed by signal 11"):
        await answers(named("crashing"), TASK)


async def test_the_tasks_beside_and_after_one_whose_agent_ended_are_done() -> None:
    agent = named("exiting_at_odds", at_once=2)
    tasks = [
        Task("k", (Message("user", "hi"),), metadata={"row": row}) for row in ("even", "odd", "even", "odd", "even")
    ]
    try:
        found = await asyncio.gather(*(agent.answer(task, "", {}) for task in tasks), return_exceptions=True)
    finally:
        await agent.close()
    assert [one if isinstance(one, str) else type(one) for one in found] == ["hi", NoAnswer, "hi", NoAnswer, "hi"]


async def test_what_it_prints_and_reads_is_not_our_conversation() -> None:
    assert await answers(named("talking"), TASK) == ["hi"]


async def test_an_agent_may_be_given_all_the_time_there_is() -> None:
    assert await answers(named("talking", seconds=float("inf")), TASK) == ["hi"]


async def test_agents_work_at_the_same_time_up_to_a_number_each_in_a_process() -> None:
    there = asyncio.Barrier(3)

    async def let(_: web.Request) -> web.Response:
        await there.wait()
        return web.Response()

    application = web.Application()
    application.router.add_get("/", let)
    async with TestServer(application) as server:
        found = await answers(named("meeting", at_once=3), *[TASK] * 6, base_url=str(server.make_url("/")))
    assert len(set(found)) == 3


async def test_with_an_agent_that_is_killed_ends_what_it_has_started(tmp_path: Path) -> None:
    os.mkfifo(said := tmp_path / "pids")
    agent = named("starting")
    working = asyncio.ensure_future(agent.answer(Task("k", (Message("user", str(said)),)), "", {}))
    watched = [os.pidfd_open(int(pid)) for pid in (await asyncio.to_thread(said.read_text)).split()]
    working.cancel()
    try:
        await asyncio.gather(*(ended(one) for one in watched))
    finally:
        await agent.close()


async def test_an_agent_does_not_outlive_who_started_it_nor_does_what_it_has_started(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from tfgrpo.agent import Agent\n"
        "from tfgrpo.types import Message, Task\n"
        f"agent = Agent.load({HERE + ':starting'!r})\n"
        "asyncio.run(agent.answer(Task('k', (Message('user', sys.argv[1]),)), '', {}))\n"
    )
    os.mkfifo(said := tmp_path / "pids")
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(said))
    try:
        watched = [os.pidfd_open(int(pid)) for pid in (await asyncio.to_thread(said.read_text)).split()]
    finally:
        parent.kill()
        await parent.wait()
    await asyncio.gather(*(ended(one) for one in watched))


async def test_another_python_that_it_starts_does_not_look_in_our_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    assert await answers(named("elsewhere"), TASK) == ["mine"]


async def ended(process: int) -> None:
    """Wait for the end of a process, by its file descriptor."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(process, over.set)
    try:
        await asyncio.wait_for(over.wait(), 30)
    finally:
        asyncio.get_running_loop().remove_reader(process)
        os.close(process)
