"""Graders that are named run apart: real processes that exit, crash, hang and talk."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tfgrpo.errors import GraderError
from tfgrpo.graders import Grade
from tfgrpo.graders.named import NamedGrader
from tfgrpo.tasks import gather
from tfgrpo.types import Message, Rollout, Task

HERE = "python:tests.tfgrpo.graders.sample"

Judged = Callable[[str], Awaitable[Grade]]


@asynccontextmanager
async def opened(function: str, *, seconds: float = 30.0) -> AsyncIterator[Judged]:
    grader = NamedGrader.load(f"{HERE}:{function}", seconds=seconds)
    task = Task("k", (Message("user", "How far?"),), "far", {"odd": {"\ud800": frozenset({1})}})
    try:
        yield lambda answer: grader.grade(task, Rollout("t", (Message("assistant", answer),)))
    finally:
        await grader.close()


@pytest.mark.parametrize(("function", "how"), [("exiting", "exit status 1"), ("crashing", "signal 11")])
async def test_a_grader_that_ends_its_process_has_failed(function: str, how: str) -> None:
    async with opened(function) as judged:
        with pytest.raises(GraderError, match=how):
            await judged("x")


async def test_the_rollouts_beside_and_after_one_whose_grader_ended_are_judged() -> None:
    async with opened("exiting_at") as judged:
        answers = ("right", "wrong", "right", "wrong", "right")
        found = await asyncio.gather(*(judged(answer) for answer in answers), return_exceptions=True)
    assert [one if isinstance(one, Grade) else type(one) for one in found] == [
        Grade(1.0),
        GraderError,
        Grade(1.0),
        GraderError,
        Grade(1.0),
    ]


async def test_one_that_never_returns_is_killed() -> None:
    async with opened("waiting", seconds=0.1) as judged:
        with pytest.raises(GraderError, match=r"longer than 0\.1 s"):
            await judged("x")


async def test_what_it_prints_and_reads_is_not_our_conversation() -> None:
    async with opened("talking") as judged:
        assert await judged("x") == Grade(0.5)


async def test_quick_ones_share_a_process() -> None:
    async with opened("own_process") as judged:
        found = await gather(judged("x") for _ in range(20))
    assert len({one.critique for one in found}) == 1


async def test_it_runs_in_no_process_of_ours() -> None:
    async with opened("own_process") as judged:
        assert (await judged("x")).critique != f"x {os.getpid()}"


async def test_a_critique_is_kept_up_to_a_bound() -> None:
    async with opened("wordy") as judged:
        assert len((await judged("x")).critique or "") == 1_000_000


async def test_any_real_number_is_a_reward() -> None:
    async with opened("third") as judged:
        assert (await judged("x")).reward == pytest.approx(1 / 3)


async def test_a_process_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from tfgrpo.graders import by_name\n"
        "from tfgrpo.types import Message, Rollout, Task\n"
        f"grader = by_name({HERE + ':sleeping'!r})\n"
        "asyncio.run(grader.grade(Task('k', ()), Rollout('t', (Message('assistant', sys.argv[1]),))))\n"
    )
    os.mkfifo(said := tmp_path / "pid")
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(said))
    try:
        pid = int(await asyncio.to_thread(said.read_text))
        watched = os.pidfd_open(pid)
    finally:
        parent.kill()
        await parent.wait()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(watched, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), 30)
    finally:
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)
