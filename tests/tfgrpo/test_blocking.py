from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from tfgrpo import blocking


async def answer() -> int:
    await asyncio.sleep(0)
    return 7


def test_a_script_gets_the_result() -> None:
    assert blocking.run(answer) == 7


async def test_a_notebook_whose_loop_runs_gets_it_too() -> None:
    assert blocking.run(answer) == 7


def test_what_the_work_raises_is_raised_here() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        blocking.run(work)


def test_an_interrupt_cancels_the_work_and_waits_for_its_end() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleanly")

    # A shell starts what it puts into the background with interrupts ignored, and whoever waits for one waits for ever.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            blocking.run(work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == ["cleanly"]
