"""Faults of the machine under a running proxy: its disk, its clock, its database. Traffic goes on, and what was
acknowledged is there after.

Outages of PostgreSQL are in test_outages.py, kills in test_recording.py and test_label_writer.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile

import psycopg
import pytest
from sqlalchemy.engine import make_url

from tests.conftest import StartProxy, StartUpstream
from tests.postgresql import Stoppable, shown, stoppable
from tests.proxy.programs import Programs, call
from tests.proxy.test_outages import KEY, label, start, state
from tests.proxy.test_recording import until
from tests.upstreams import RawUpstream, chat
from tfgrpo import library
from tfgrpo.errors import StoreError
from tfgrpo.store import Store

HOURS = 3600


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(chat)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a disk of this size; only root may."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(["/bin/mount", *options], capture_output=True, check=False).returncode:  # noqa: S603
        pytest.skip("a disk of its own can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["/bin/umount", "-l", str(folder)], check=True)  # noqa: S603


def remount(disk: Path, how: str) -> None:
    """Have a mounted disk take writes (`rw`) or not (`ro`)."""
    subprocess.run(["/bin/mount", "-o", f"remount,{how}", str(disk)], check=True)  # noqa: S603


class BreakableDisk:
    """A disk in a file that turns read-only when told to, as one with a fault does; only root may have it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._image = folder.with_suffix(".img")
        folder.mkdir()
        with self._image.open("wb") as file:
            file.truncate(64 << 20)
        if not (self._does("/sbin/mkfs.ext4", "-q", "-F", str(self._image)) and self.mount()):
            pytest.skip("a disk in a file can be mounted by root only, with ext4's tools")

    def mount(self) -> bool:
        return self._does("/bin/mount", "-o", "loop,errors=remount-ro", str(self._image), str(self._folder))

    def unmount(self) -> bool:
        return self._does("/bin/umount", str(self._folder))

    def turn_read_only(self) -> None:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        device = next(Path(of).name for of, at, *_ in mounts if at == str(self._folder))
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("1")

    @staticmethod
    def _does(*command: str) -> bool:
        with suppress(FileNotFoundError):
            return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
        return False


@pytest.fixture
def breakable(tmp_path: Path) -> Iterator[BreakableDisk]:
    disk = BreakableDisk(tmp_path / "disk")
    yield disk
    disk.unmount()


def fill(disk: Path) -> Path:
    """Leave no room on a disk; what is returned holds it all."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


def test_on_a_full_disk_traffic_goes_on_and_comes_back_from_the_other_disk(
    start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        proxy = start(start_proxy, upstream, f"sqlite:///{disk / 'store.db'}", tmp_path)
        proxy.deploy("s", "Check units.")
        before = proxy.chat("before").headers["x-tfgrpo-exchange"]
        assert label(proxy, before, feedback_id="fb-before").status == 200
        ballast = fill(disk)
        during = [proxy.chat(f"task {number} " + os.urandom(5000).hex()) for number in range(40)]
        assert {(answer.status, answer.headers["x-tfgrpo-set"]) for answer in during} == {(200, "s@1")}
        assert until(lambda: state(proxy) == "degraded")
        refused = label(proxy, before, feedback_id="fb-during", metric="m" * 60, comment=os.urandom(4000).hex())
        assert (refused.status, refused.json["error"]["code"]) == (503, "store_unavailable")
        ballast.unlink()
        assert until(lambda: state(proxy) == "ready")
        assert label(proxy, before, feedback_id="fb-before").json["status"] == "duplicate"
        assert label(proxy, during[0].headers["x-tfgrpo-exchange"]).status == 200
        asked = {before, *(answer.headers["x-tfgrpo-exchange"] for answer in during)}
        assert asked <= {one.id for one in proxy.recorded()}


def test_on_a_full_disk_with_nowhere_else_to_go_what_is_dropped_is_counted(
    start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        url = f"sqlite:///{disk / 'store.db'}"
        proxy = start(start_proxy, upstream, url, disk, recorder={"queue_bytes": 2**20})
        ballast = fill(disk)
        during = [proxy.chat(os.urandom(25_000).hex()) for _ in range(60)]
        assert {answer.status for answer in during} == {200}
        assert proxy.request("GET", "/status").json["recorder"]["dropped"] > 0
        ballast.unlink()
        assert until(lambda: state(proxy) == "ready")


def test_a_disk_that_turns_read_only_stops_no_traffic_and_what_was_meant_for_it_comes_back(
    start_proxy: StartProxy, upstream: RawUpstream, breakable: BreakableDisk, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'disk' / 'store.db'}"
    proxy = start(start_proxy, upstream, url, tmp_path)
    proxy.deploy("s", "Check units.")
    before = proxy.chat("before").headers["x-tfgrpo-exchange"]
    assert label(proxy, before, feedback_id="fb-before").status == 200
    breakable.turn_read_only()
    during = [proxy.chat(f"task {number}") for number in range(20)]
    assert {(answer.status, answer.headers["x-tfgrpo-set"]) for answer in during} == {(200, "s@1")}
    refused = label(proxy, before, feedback_id="fb-during")
    assert (refused.status, refused.json["error"]["code"]) == (503, "store_unavailable")
    assert until(lambda: state(proxy) == "degraded")
    proxy.stop()
    assert breakable.unmount()
    assert breakable.mount()
    again = start(start_proxy, upstream, url, tmp_path)
    assert label(again, before, feedback_id="fb-before").json["status"] == "duplicate"
    assert again.chat("after").headers["x-tfgrpo-set"] == "s@1"
    asked = {before, *(answer.headers["x-tfgrpo-exchange"] for answer in during)}
    assert until(lambda: asked <= {one.id for one in again.recorded()})
    again.stop()


def test_a_store_that_was_opened_on_a_read_only_disk_is_written_once_the_disk_is_mended(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        with closing(Store.open(f"sqlite:///{disk / 'store.db'}", migrate=True)):
            # As a kill leaves it: with its log, so that it can be opened where nothing can be written.
            for file in disk.glob("store.db*"):
                copyfile(file, disk / file.name.replace("store", "killed"))
        remount(disk, "ro")
        with closing(Store.open(f"sqlite:///{disk / 'killed.db'}")) as store:
            with pytest.raises(StoreError, match="readonly"):
                store.sets.add_version("s", library.from_texts(["Check units."]), status="by hand")
            remount(disk, "rw")
            assert store.sets.add_version("s", library.from_texts(["Check units."]), status="by hand").version == 1


def test_a_store_on_a_read_only_disk_refuses_the_start(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        Store.open(f"sqlite:///{disk / 'store.db'}", migrate=True).close()
        remount(disk, "ro")
        config = tmp_path / "c.yaml"
        config.write_text(f"store: {{url: 'sqlite:///{disk / 'store.db'}'}}\nserver: {{port: 0}}\n")
        ended = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "proxy", "--config", str(config)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert ended.returncode == 1
    assert "read" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.fixture(scope="module")
def machine() -> Iterator[Stoppable]:
    with stoppable() as started:
        yield started


@pytest.fixture
def database(machine: Stoppable) -> Iterator[str]:
    with machine.database() as made:
        yield made


def beside(database: str, name: str = "postgres") -> psycopg.Connection:
    """Connect to the server of a database as somebody else."""
    url = make_url(database).set(drivername="postgresql", database=name)
    return psycopg.connect(shown(url), autocommit=True)


def cut_off(database: str, other: psycopg.Connection) -> int:
    """End all connections to a database, and return how many there were."""
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    return other.execute(query, [make_url(database).database]).rowcount


def crowd_in(database: str, crowd: ExitStack) -> int:
    """Connect as often as the server allows, and return how often that was."""
    made = 0
    with suppress(psycopg.OperationalError):
        while True:
            crowd.enter_context(closing(beside(database)))
            made += 1
    return made


def test_while_postgresql_may_only_be_read_as_on_a_standby_traffic_goes_on(
    database: str, start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    proxy = start(start_proxy, upstream, database, tmp_path)
    proxy.deploy("s", "Check units.")
    with closing(beside(database)) as other:
        switch = f"ALTER DATABASE {make_url(database).database} SET default_transaction_read_only = "
        other.execute(f"{switch} on".encode())
        cut_off(database, other)
        during = [proxy.chat(f"task {number}") for number in range(20)]
        assert {(answer.status, answer.headers["x-tfgrpo-set"]) for answer in during} == {(200, "s@1")}
        refused = label(proxy, during[0].headers["x-tfgrpo-exchange"])
        assert (refused.status, refused.json["error"]["code"]) == (503, "store_unavailable")
        assert until(lambda: state(proxy) == "degraded")
        other.execute(f"{switch} off".encode())
        cut_off(database, other)
    assert until(lambda: state(proxy) == "ready")
    assert label(proxy, during[0].headers["x-tfgrpo-exchange"]).status == 200
    assert {one.headers["x-tfgrpo-exchange"] for one in during} <= {one.id for one in proxy.recorded()}


def test_while_others_hold_all_connections_of_postgresql_traffic_goes_on(
    database: str, start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    proxy = start(start_proxy, upstream, database, tmp_path)
    proxy.deploy("s", "Check units.")
    with ExitStack() as crowd:
        first = crowd.enter_context(closing(beside(database)))
        # A connection that was ended keeps its place for a moment: full is only what took nobody when none was left.
        while cut_off(database, first) + crowd_in(database, crowd):
            pass
        during = [proxy.chat(f"task {number}") for number in range(20)]
        assert {(answer.status, answer.headers["x-tfgrpo-set"]) for answer in during} == {(200, "s@1")}
        assert label(proxy, during[0].headers["x-tfgrpo-exchange"]).status == 503
        assert until(lambda: state(proxy) == "degraded")
    assert until(lambda: state(proxy) == "ready")
    assert label(proxy, during[0].headers["x-tfgrpo-exchange"]).status == 200
    assert {one.headers["x-tfgrpo-exchange"] for one in during} <= {one.id for one in proxy.recorded()}


def test_more_labels_at_once_than_the_pool_has_connections_are_stored_or_refused(
    database: str, start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path
) -> None:
    proxy = start(start_proxy, upstream, database, tmp_path)
    asked = proxy.chat("hi").headers["x-tfgrpo-exchange"]
    assert label(proxy, asked, metric="first").status == 200

    def post(number: int) -> tuple[str, int]:
        name = f"fb-{number}"
        return name, label(proxy, asked, metric=f"m{number}", feedback_id=name).status

    with closing(beside(database, str(make_url(database).database))) as other, ThreadPoolExecutor(80) as clients:
        with other.transaction():
            other.execute("LOCK TABLE labels IN ACCESS EXCLUSIVE MODE")
            posts = [clients.submit(post, number) for number in range(80)]
            assert {proxy.chat(f"task {number}").status for number in range(20)} == {200}
            assert proxy.request("GET", "/health/liveness").status == 200
        answered = dict(one.result() for one in posts)
    assert set(answered.values()) <= {200, 503}
    taken = {name for name, status in answered.items() if status == 200}
    with closing(Store.open(database)) as store:
        found = store.traffic.exchange(asked)
        assert found is not None
        assert taken <= {one.feedback_id for one in store.labels.of_trajectory(found.app, found.trajectory)}
    assert taken


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give programs that start a wall clock that is off by what stands in a file."""
    found = find_spec("libfaketime")
    assert found is not None
    assert found.origin is not None
    library = Path(found.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
    file = tmp_path / "clock"
    file.write_text("+0")
    for name, value in {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }.items():
        monkeypatch.setenv(name, value)
    return file


def ask(port: int, text: str, **headers: str) -> dict[str, str]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return call(port, "POST", "/v1/chat/completions", body, authorization=KEY["authorization"], **headers)[0]


def test_a_clock_that_is_set_back_loses_no_record_no_label_and_no_deployment(
    programs: Programs, url: str, clock: Path
) -> None:
    (port,) = programs(url, 1, 1)
    made = call(port, "POST", "/admin/api/sets/s/versions", {"experiences": [{"text": "Check units."}]})[1]
    call(port, "PUT", "/admin/api/sets/s/deployment", {"live": made["version"], "reason": "test"})
    named = {"x-tfgrpo-trajectory": "mine"}
    # A store that is slow to answer its first question leaves a trajectory unknown, which is then not begun.
    assert until(lambda: ask(port, "before", **named)["x-tfgrpo-arm"] == "live")
    before = ask(port, "before", **named)
    clock.write_text("-2h")
    after = ask(port, "after", **named)
    assert (before["x-tfgrpo-set"], after["x-tfgrpo-set"]) == ("s@1", "s@1")
    for exchange in (before["x-tfgrpo-exchange"], after["x-tfgrpo-exchange"]):
        feedback = {"exchange_id": exchange, "value": True}
        assert call(port, "POST", "/v1/feedback", feedback, authorization=KEY["authorization"])[1]["status"] == "stored"
    call(port, "POST", "/admin/api/sets/s/versions", {"experiences": [{"text": "Check signs."}]})
    call(port, "PUT", "/admin/api/sets/s/deployment", {"live": 2, "reason": "test"})
    assert ask(port, "new")["x-tfgrpo-set"] == "s@2"
    assert ask(port, "more", **named)["x-tfgrpo-set"] == "s@1"
    (second,) = programs(url, 1, 1)
    assert ask(second, "newer")["x-tfgrpo-set"] == "s@2"
    assert until(lambda: ask(second, "and more", **named)["x-tfgrpo-set"] == "s@1")
    with closing(Store.open(url)) as store:
        taken = until(lambda: len(store.traffic.page(limit=100)) >= 7)
        (early, late) = (store.traffic.page(limit=100)[at].started_at for at in (0, -1))
    assert taken
    assert early - late > HOURS
