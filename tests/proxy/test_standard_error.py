"""A standard error that nobody reads, a pipe that is full, must hold up neither a request nor the end."""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from proxy.standard_error import Handler, Lines, dropped_from_log
from tests.conftest import StartUpstream
from tests.upstreams import PATIENCE, chat

WRITING = 10
"""As many lines may be in the hands of the thread already."""

ROOT = Path(__file__).parents[2]
ASKED = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe()
    yield reads, writes
    for end in (reads, writes):
        with suppress(OSError):
            os.close(end)


def fill(writes: int) -> int:
    """Fill a pipe to the last byte; return how many it took."""
    os.set_blocking(writes, False)
    taken = 0
    with suppress(BlockingIOError):
        while True:
            taken += os.write(writes, b"x" * 512)
    os.set_blocking(writes, True)
    return taken


def read(reads: int, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += os.read(reads, size - len(got))
    return got


def test_lines_come_whole_and_in_their_order(pipe: tuple[int, int]) -> None:
    lines = Lines(pipe[1])
    wanted = [f"line {number} \udcff" for number in range(500)]
    for one in wanted:
        lines.put(one)
    assert lines.flush()
    os.close(pipe[1])
    with os.fdopen(os.dup(pipe[0])) as reading:
        assert reading.read().splitlines() == [one.replace("\udcff", "\\udcff") for one in wanted]


def test_what_nobody_reads_is_dropped_beyond_the_bound_and_counted(pipe: tuple[int, int]) -> None:
    already = fill(pipe[1])
    lines = Lines(pipe[1], most=10)
    for number in range(50):
        lines.put(f"{number:02}")
    assert not lines.flush(0.01)
    assert 50 - 10 - WRITING <= lines.dropped <= 50 - 10
    read(pipe[0], already)
    assert lines.flush()


def test_a_closed_standard_error_is_no_fault(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    lines = Lines(pipe[1])
    with suppress(BrokenPipeError):
        lines.put("for nobody")
    assert lines.flush()
    assert lines.dropped == 1


def test_a_record_that_cannot_be_formatted_is_a_line_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    handler = Handler()
    handler.emit(logging.LogRecord("proxy.x", logging.ERROR, "f", 7, "%d", ("no number",), None))
    handler.close()
    assert capfd.readouterr().err == "a line of the log could not be formatted (proxy.x, line 7)\n"


def test_what_the_log_lost_is_told() -> None:
    handler = Handler()
    handler.lines.dropped = 3
    logging.getLogger().addHandler(handler)
    try:
        assert dropped_from_log() == 3
    finally:
        logging.getLogger().removeHandler(handler)


class Unread:
    """A proxy whose standard error is full from the start and is read by nobody."""

    def __init__(self, folder: Path, writes: int, upstream: str, **sections: Any) -> None:
        values = {
            "server": {"port": 0, "drain_seconds": 1},
            "store": {"url": f"sqlite:///{folder}/s.db"},
            "upstreams": [{"name": "up", "base_url": upstream}],
            "telemetry": {"access_log": True, "metrics": True},
            **sections,
        }
        (folder / "c.yaml").write_text(json.dumps(values))
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "proxy", "--config", str(folder / "c.yaml")],
            stdout=subprocess.PIPE,
            stderr=writes,
            cwd=ROOT,
        )
        # A proxy that waits for its standard error says nothing: then reading ends when it is killed.
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        late.cancel()
        if not said:
            self.process.communicate()
            pytest.fail("the proxy did not start")
        self.port = int(said.split(b"127.0.0.1:")[1].split(b"/")[0])

    def ask(self, times: int) -> list[int]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        statuses = []
        for _ in range(times):
            line.request("POST", "/v1/chat/completions", ASKED, {"content-type": "application/json"})
            answered = line.getresponse()
            answered.read()
            statuses.append(answered.status)
        line.close()
        return statuses

    def get(self, path: str) -> bytes:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        line.request("GET", path)
        got = line.getresponse().read()
        line.close()
        return got

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.communicate()


def test_requests_are_answered_and_the_end_comes_with_an_access_log_that_nobody_reads(
    tmp_path: Path, start_upstream: StartUpstream, pipe: tuple[int, int]
) -> None:
    fill(pipe[1])
    proxy = Unread(tmp_path, pipe[1], start_upstream(chat).base_url)
    try:
        assert proxy.ask(40) == [200] * 40
        assert b"tfgrpo_exchanges_total" in proxy.get("/metrics")
        assert json.loads(proxy.get("/status"))["log_lines_dropped"] == 0
    finally:
        assert proxy.end() == 0


def test_a_proxy_with_much_to_complain_of_serves_though_nobody_reads_it(
    tmp_path: Path, start_upstream: StartUpstream, pipe: tuple[int, int]
) -> None:
    fill(pipe[1])
    # Nothing listens there: the store is away from the start, and each part of the proxy says so.
    away = {"store": {"url": "postgresql+psycopg://u@127.0.0.1:9/none"}, "outage": {"folder": str(tmp_path / "o")}}
    proxy = Unread(tmp_path, pipe[1], start_upstream(chat).base_url, **away)
    try:
        assert proxy.ask(5) == [200] * 5
    finally:
        assert proxy.end() == 0
