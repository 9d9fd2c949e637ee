"""The program itself, in processes of its own: started, asked, and stopped."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.upstreams import PATIENCE

REPOSITORY = Path(__file__).parents[2]

Programs = Callable[[str, int, int], list[int]]


@contextmanager
def running(config: Path, url: str, workers: int) -> Iterator[int]:
    """Run the program and yield its port once every worker has answered."""
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "proxy", "--config", str(config), "--workers", str(workers)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TFGRPO_STORE__URL": url},
        cwd=REPOSITORY,
    )
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)/v1", process.stdout.readline())
        assert found is not None
        port = int(found.group(1))
        until, pids = time.monotonic() + 3 * PATIENCE, set[int]()
        while len(pids) < workers and time.monotonic() < until:
            pids.add(call(port, "GET", "/status")[1]["worker"])
        assert len(pids) == workers
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=3 * PATIENCE)


def call(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[dict[str, str], Any]:
    """Send a request on a connection of its own, which any worker may take."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=3 * PATIENCE)
    try:
        line.request(method, path, None if body is None else json.dumps(body), headers)
        answer = line.getresponse()
        assert answer.status in (200, 201), answer.read()
        return {name.lower(): value for name, value in answer.getheaders()}, json.loads(answer.read())
    finally:
        line.close()
