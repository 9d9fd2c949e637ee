from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proxy import scheduler
from proxy.scheduler import LEASE, Schedule, Scheduler
from tests.proxy.examples import assignment, exchange, store
from tfgrpo.errors import UsageError
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies

PROGRAM = Path(__file__).with_name("train_for_tests.py")


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = store(tmp_path)
    opened.traffic.add(Batch(exchanges=((exchange("ex-1"), Bodies()),), assignments=(assignment("t-1"),)))
    yield opened
    opened.close()


def every_second(kept: Store, folder: Path, *, config: Path | None = None) -> Scheduler:
    program = (sys.executable, str(PROGRAM), str(folder))
    return Scheduler(kept, Schedule(every=1), sets=("unused",), config=config, program=program)


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


def calls(folder: Path) -> list[str]:
    file = folder / "calls"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("every 6h", 21600), ("every 30m", 1800), ("every 45s", 45), ("every 1d", 86400), (" every  2 h ", 7200)],
)
def test_an_interval_is_read(text: str, seconds: int) -> None:
    assert scheduler.parse(text) == Schedule(every=seconds)


@pytest.mark.parametrize("text", ["", "every", "every 0s", "every 6", "6h", "* * *", "61 * * * *", "0 0 30 2 *"])
def test_what_is_no_schedule_is_refused_and_the_key_named(text: str) -> None:
    with pytest.raises(UsageError, match=r"training\.schedule") as refused:
        scheduler.parse(text)
    assert refused.value.field == "training.schedule"


def test_intervals_are_counted_from_the_epoch_so_that_a_restart_does_not_shift_them() -> None:
    assert Schedule(every=3600).after(7201.0) == 10800.0
    assert Schedule(every=3600).after(7200.0) == 10800.0


def test_a_cron_line_is_meant_in_local_time() -> None:
    now = datetime(2026, 5, 4, 12, 0, tzinfo=UTC).timestamp()
    due = datetime.fromtimestamp(scheduler.parse("30 3 * * *").after(now), UTC).astimezone()
    assert (due.hour, due.minute) == (3, 30)
    assert 0 < due.timestamp() - now <= 86400


async def test_training_starts_for_each_set_with_traffic(kept: Store, tmp_path: Path) -> None:
    running = every_second(kept, tmp_path, config=tmp_path / "config.yaml")
    await running.start()
    await until(lambda: bool(calls(tmp_path)))
    await running.stop()
    assert calls(tmp_path)[0] == f"train --set math --from traffic --config {tmp_path / 'config.yaml'}"
    assert not [call for call in calls(tmp_path) if "unused" in call]


async def test_the_end_of_a_training_is_logged_with_what_it_said(
    kept: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = every_second(kept, tmp_path)
    with caplog.at_level(logging.INFO):
        await running.start()
        await until(lambda: any("ended with exit status 3: nothing to learn from" in r.message for r in caplog.records))
        await running.stop()


async def test_only_the_holder_of_the_lease_trains(kept: Store, tmp_path: Path) -> None:
    assert kept.runs.acquire(LEASE, "another worker", 60)
    ticks = iter(range(1_000_000, 2_000_000))
    program = (sys.executable, str(PROGRAM), str(tmp_path))
    # Each look at the clock finds another second gone, so that many times come due in no time.
    running = Scheduler(kept, Schedule(every=1), program=program, clock=lambda: float(next(ticks)))
    await running.start()
    await until(lambda: next(ticks) > 1_000_050)
    await running.stop()
    assert calls(tmp_path) == []


async def test_stopping_ends_a_running_training(kept: Store, tmp_path: Path) -> None:
    (tmp_path / "wait").touch()
    running = every_second(kept, tmp_path)
    await running.start()
    await until((tmp_path / "pid").exists)
    await until(lambda: (tmp_path / "pid").read_text() != "")
    await running.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_stopping_gives_the_lease_back(kept: Store, tmp_path: Path) -> None:
    running = every_second(kept, tmp_path)
    await running.start()
    await until(lambda: kept.runs.holder(LEASE) is not None)
    await running.stop()
    assert kept.runs.holder(LEASE) is None


async def test_a_program_that_cannot_be_started_is_logged(
    kept: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = Scheduler(kept, Schedule(every=1), program=(str(tmp_path / "missing"),))
    await running.start()
    await until(lambda: any("could not be started" in record.message for record in caplog.records))
    await running.stop()
