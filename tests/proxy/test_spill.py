from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from proxy.recording import Recorder
from proxy.spill import Spill
from tests.proxy.examples import assignment, exchange, store
from tests.proxy.test_recording import REPOSITORY, until
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Link

MIB = 1 << 20


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = store(tmp_path)
    yield opened
    opened.close()


@contextmanager
def away(folder: Path) -> Iterator[None]:
    """A store that takes nothing: its table bears another name meanwhile."""
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as other:
        other.execute("ALTER TABLE exchanges RENAME TO elsewhere")
        yield
        other.execute("ALTER TABLE elsewhere RENAME TO exchanges")


def batch(name: str, size: int = 10) -> Batch:
    return Batch(exchanges=((exchange(name), Bodies(b"q" * size, b"a")),))


def test_records_that_the_store_does_not_take_go_to_disk_and_come_back(tmp_path: Path, kept: Store) -> None:
    spill = Spill(kept, tmp_path / "spill", limit=MIB)
    spill.start()
    recorder = Recorder(kept, spill=spill)
    recorder.start()
    with away(tmp_path):
        recorder.put_link(assignment("t-1"), Link("k", "default", "t-1", "ex-1", 1.0))
        recorder.put(exchange("ex-1"), Bodies(b"question", b"answer"))
        assert until(lambda: spill.stats.kept == 1)
        assert until(lambda: recorder.stats.queued_bytes == 0)
    assert until(lambda: spill.stats.replayed == 1)
    assert kept.traffic.bodies(["ex-1"])["ex-1"] == Bodies(b"question", b"answer")
    assert kept.traffic.find_links(["k"])
    assert not spill.away
    recorder.stop()
    spill.stop()
    assert list((tmp_path / "spill").iterdir()) == []


def test_what_waits_at_a_stop_is_replayed_by_the_next_start(tmp_path: Path, kept: Store) -> None:
    first = Spill(kept, tmp_path / "spill", limit=MIB)
    with away(tmp_path):
        first.start()
        for name in ("ex-1", "ex-2"):
            assert first.keep(batch(name))
        first.stop()
    second = Spill(kept, tmp_path / "spill", limit=MIB)
    second.start()
    assert until(lambda: second.stats.replayed == 2)
    second.stop()
    assert {found.id for found in kept.traffic.page(limit=9)} == {"ex-1", "ex-2"}


def test_the_file_of_a_living_worker_is_left_to_it(tmp_path: Path, kept: Store) -> None:
    living = Spill(kept, tmp_path / "spill", limit=MIB)
    assert living.keep(batch("ex-1"))
    other = Spill(kept, tmp_path / "spill", limit=MIB)
    other.start()
    assert other.stats.waiting_bytes == 0
    other.stop()


def test_of_two_that_start_one_takes_a_dead_workers_file_over(tmp_path: Path, kept: Store) -> None:
    killed(tmp_path)
    with away(tmp_path):
        both = [Spill(kept, tmp_path / "spill", limit=MIB) for _ in range(2)]
        for one in both:
            one.start()
        assert [one.stats.waiting_bytes > 0 for one in both] == [True, False]
    assert until(lambda: both[0].stats.replayed > 0)
    for one in both:
        one.stop()
    assert kept.traffic.exchange("ex-0") is not None


def test_a_torn_last_frame_ends_a_file_and_is_counted(tmp_path: Path, kept: Store) -> None:
    killed(tmp_path)
    (file,) = (tmp_path / "spill").iterdir()
    os.truncate(file, file.stat().st_size - 3)
    spill = Spill(kept, tmp_path / "spill", limit=MIB)
    spill.start()
    assert until(lambda: spill.stats.lost == 1)
    assert spill.stats.replayed > 0
    spill.stop()
    assert list((tmp_path / "spill").iterdir()) == []


def test_a_file_of_noise_is_no_records_and_no_failure(tmp_path: Path, kept: Store) -> None:
    (tmp_path / "spill").mkdir()
    (tmp_path / "spill" / "1-noise.spill").write_bytes(os.urandom(5000))
    spill = Spill(kept, tmp_path / "spill", limit=MIB)
    spill.start()
    assert until(lambda: spill.stats.lost == 1)
    spill.stop()


def test_over_its_bound_it_takes_no_more(tmp_path: Path, kept: Store) -> None:
    spill = Spill(kept, tmp_path / "spill", limit=6000)
    assert [spill.keep(batch(f"ex-{number}", 2000)) for number in range(3)] == [True, True, False]


def test_a_folder_that_cannot_be_made_leaves_the_records_with_the_caller(tmp_path: Path, kept: Store) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert not Spill(kept, tmp_path / "file" / "below", limit=MIB).keep(batch("ex-1"))


def test_when_the_disk_is_full_whole_frames_stay_whole(tmp_path: Path) -> None:
    # A limit on the size of files is what a full disk looks like to a writer: part of it is written, then an error.
    script = "import sys; from tests.proxy.test_spill import fill; fill(sys.argv[1])"
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", script, str(tmp_path)], cwd=REPOSITORY, capture_output=True, check=True
    )
    assert ended.stdout.split() == [b"2", b"ex-0", b"ex-1"]


def fill(folder: str) -> None:
    """Keep until the disk takes no more, then free it and print what was kept and what came back."""
    opened = store(Path(folder))
    spill = Spill(opened, Path(folder) / "spill", limit=MIB)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, unlimited[1]))
    taken = [spill.keep(batch(f"ex-{number}", 2000)) for number in range(4)]
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    spill.start()
    assert until(lambda: spill.stats.replayed == 2)
    spill.stop()
    sys.stdout.write(" ".join([str(sum(taken)), *sorted(found.id for found in opened.traffic.page(limit=9))]))


def test_a_full_store_spills_and_takes_it_all_when_there_is_room_again(tmp_path: Path, kept: Store) -> None:
    spill = Spill(kept, tmp_path / "spill", limit=8 * MIB)
    spill.start()
    recorder = Recorder(Store.open(f"sqlite:///{tmp_path / 'store.db'}"), spill=spill)
    recorder.start()
    with full(tmp_path):
        for number in range(50):
            recorder.put(exchange(f"ex-{number}"), Bodies(os.urandom(2000)))
        assert until(lambda: spill.stats.kept == 50)
    assert until(lambda: spill.stats.replayed == 50)
    recorder.stop()
    spill.stop()
    assert len(kept.traffic.page(limit=99)) == 50


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """A store whose disk takes nothing more: a trigger raises what SQLite raises then."""
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON bodies BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
        yield
        other.execute("DROP TRIGGER full")


def test_a_spill_holds_no_more_than_its_owner_may_read(tmp_path: Path, kept: Store) -> None:
    spill = Spill(kept, tmp_path / "spill", limit=MIB)
    spill.keep(batch("ex-1"))
    (file,) = (tmp_path / "spill").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def killed(folder: Path) -> None:
    """Leave the file of a worker that was killed: it kept some batches and holds its lock no more."""
    script = "import sys; from tests.proxy.test_spill import keep_and_wait; keep_and_wait(sys.argv[1])"
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:  # noqa: S603 - our own program
        assert process.stdout is not None
        assert process.stdout.readline() == b"kept\n"
        process.send_signal(signal.SIGKILL)


def keep_and_wait(folder: str) -> None:
    """Keep three batches, say so, and wait to be killed."""
    spill = Spill(Store.open(f"sqlite:///{folder}/store.db", migrate=True), Path(folder) / "spill", limit=MIB)
    for number in range(3):
        spill.keep(batch(f"ex-{number}"))
    sys.stdout.write("kept\n")
    sys.stdout.flush()
    signal.pause()
