from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import pytest

from proxy.recording import Recorder, Taken
from tests.proxy.examples import assignment, exchange, store
from tfgrpo.store import Store
from tfgrpo.types import Bodies, Link

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def recorder(kept: Store) -> Iterator[Recorder]:
    made = Recorder(kept)
    made.start()
    yield made
    made.stop()


def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait for something that another thread brings about."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def test_a_record_reaches_the_store_within_a_second(kept: Store, recorder: Recorder) -> None:
    recorder.put(exchange("ex-1"), Bodies(b"question", b"answer"))
    assert until(lambda: kept.traffic.exchange("ex-1") is not None, 1.0)
    assert kept.traffic.bodies(["ex-1"])["ex-1"] == Bodies(b"question", b"answer")


def test_a_link_reaches_the_store_by_itself(kept: Store, recorder: Recorder) -> None:
    recorder.put_link(assignment("t-1"), Link("k", "default", "t-1", "ex-1", 1.0))
    assert until(lambda: bool(kept.traffic.find_links(["k"])))


def test_what_continues_an_exchange_marks_it_as_taken(kept: Store, recorder: Recorder) -> None:
    recorder.put_link(assignment("t-1"), Link("k", "default", "t-1", "ex-1", 1.0), Taken("ex-1", "ex-2"))
    assert until(lambda: [found.taken for found in kept.traffic.find_links(["k"])] == [True])


def test_stopping_writes_all_that_waits(kept: Store) -> None:
    recorder = Recorder(kept)
    for number in range(3000):
        recorder.put(exchange(f"ex-{number}"), Bodies(b"q" * 1000, b"a" * 1000))
    recorder.start()
    assert recorder.stop(30) == 0
    assert len(kept.traffic.page(limit=5000)) == 3000


def test_a_body_over_the_limit_is_cut_and_the_record_says_so(kept: Store) -> None:
    recorder = Recorder(kept, body_bytes=10)
    recorder.start()
    recorder.put(exchange("ex-1"), Bodies(b"q" * 11, b"a" * 10))
    recorder.stop()
    found = kept.traffic.exchange("ex-1")
    assert found is not None
    assert found.truncated
    assert kept.traffic.bodies(["ex-1"])["ex-1"].request == b"q" * 10


def test_a_full_queue_drops_the_new_record_and_counts_it(kept: Store) -> None:
    recorder = Recorder(kept, queue_bytes=10_000)
    for number in range(5):
        recorder.put(exchange(f"ex-{number}"), Bodies(b"q" * 2000))
    assert recorder.stats.dropped == 2
    recorder.start()
    recorder.stop()
    assert {found.id for found in kept.traffic.page(limit=9)} == {"ex-0", "ex-1", "ex-2"}


def test_drops_are_logged_once_a_second_at_most(kept: Store, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(kept, queue_bytes=0)
    with caplog.at_level(logging.ERROR):
        for number in range(50):
            recorder.put(exchange(f"ex-{number}"), Bodies())
    assert recorder.stats.dropped == 50
    assert len(caplog.records) == 1


def test_a_row_that_cannot_be_stored_does_not_take_the_others_with_it(kept: Store) -> None:
    recorder = Recorder(kept)
    recorder.put(exchange("ex-1"), Bodies())
    recorder.put(exchange("ex-2", trajectory="\ud800"), Bodies())
    recorder.put(exchange("ex-3"), Bodies())
    recorder.start()
    assert recorder.stop() == 0
    assert {found.id for found in kept.traffic.page(limit=9)} == {"ex-1", "ex-3"}
    assert recorder.stats.dropped == 1


def test_while_the_store_does_not_answer_records_wait_and_are_written_after(tmp_path: Path, kept: Store) -> None:
    recorder = Recorder(kept)
    recorder.start()
    # Renaming a table away is what a store that does not answer looks like to a writer: an error, then none.
    with sqlite3.connect(tmp_path / "store.db", isolation_level=None) as other:
        other.execute("ALTER TABLE exchanges RENAME TO elsewhere")
        recorder.put(exchange("ex-1"), Bodies(b"q"))
        assert until(lambda: recorder.stats.failing)
        assert [waiting.id for waiting, _ in recorder.unwritten()] == ["ex-1"]
        other.execute("ALTER TABLE elsewhere RENAME TO exchanges")
    other.close()
    assert until(lambda: kept.traffic.exchange("ex-1") is not None)
    assert recorder.stop() == 0
    assert recorder.stats.queued_bytes == 0


def test_stopping_says_how_many_records_a_dead_store_did_not_take(tmp_path: Path, kept: Store) -> None:
    recorder = Recorder(kept)
    recorder.start()
    with sqlite3.connect(tmp_path / "store.db", isolation_level=None) as other:
        other.execute("DROP TABLE exchanges")
    other.close()
    recorder.put(exchange("ex-1"), Bodies())
    recorder.put(exchange("ex-2"), Bodies())
    assert recorder.stop(0.2) == 2


def test_after_everything_is_written_the_queue_weighs_nothing(kept: Store) -> None:
    recorder = Recorder(kept)
    recorder.start()
    for number in range(200):
        recorder.put_link(assignment(f"t-{number}"), Link(f"k-{number}", "default", "t-1", "ex-1", 1.0))
        recorder.put(exchange(f"ex-{number}"), Bodies(b"q" * 100))
    recorder.stop()
    assert recorder.stats.queued_bytes == 0
    assert recorder.stats.written == 200


def test_a_kill_loses_no_record_older_than_a_second(url: str) -> None:
    command = [sys.executable, "-m", "tests.proxy.recording_until_killed", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:  # noqa: S603 - our own program
        assert process.stdout is not None
        queued = _read_for(process.stdout, seconds=2.5)
        process.kill()
        killed_at = time.time()
        queued += [line.split() for line in process.stdout.read().splitlines() if len(line.split()) == 2]
    settled = {f"ex-{int(number)}" for number, at in queued if float(at) < killed_at - 1}
    assert len(settled) > 500
    with closing(Store.open(url)) as kept:
        assert settled <= {found.id for found in kept.traffic.page(limit=100_000)}


def _read_for(output: IO[bytes], *, seconds: float) -> list[list[bytes]]:
    lines = [output.readline().split()]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        lines.append(output.readline().split())
    return lines
