"""`make bench-dashboard`: how long each page of the dashboard takes on a store of 1,000,000 exchanges.

A proxy of its own serves the pages; every page is asked for several times, in turn, over one connection. The time is
that until the whole page is there, by the clock and of the proxy's processor; PostgreSQL's own is in the first only.
What is asked for is what a person would ask for, and the worst that we could think of: what is rare and old, what there
is not, and texts, for each of which a page looks as long as it may. Fails (exit status 1) when the median of a page is
over the goal of issue 6.
"""

from __future__ import annotations

import argparse
import html
import http.client
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlencode

from benchmarks import filling
from benchmarks.processes import Cores, cpu_seconds, free_port, running
from tests.postgresql import server

MOST_SECONDS: Final = 0.3
ROUNDS: Final = 7
START_SECONDS: Final = 60.0

FILTERS: Final[Mapping[str, Mapping[str, str]]] = {
    "no filter": {},
    "set": {"set": "math"},
    "rare set": {"set": filling.RARE_SET},
    "no such set": {"set": "none"},
    "app": {"app": "desk"},
    "old, rare app": {"app": filling.QUIET_APP},
    "model": {"model": "gpt-4o"},
    "model of one": {"model": filling.RARE_MODEL},
    "arm": {"arm": "candidate"},
    "rare arm": {"arm": "pinned"},
    "labelled": {"judged": "any"},
    "not labelled": {"judged": "none"},
    "low reward": {"judged": "low"},
    "a day": {"since": "{month}", "until": "{next day}"},
    "text": {"text": "refund"},
    "text of one": {"text": filling.RARE_TEXT},
    "old app, labelled: none": {"app": filling.QUIET_APP, "judged": "any"},
    "set, rare arm, model of one, low": {
        "set": "math",
        "arm": "pinned",
        "model": filling.RARE_MODEL,
        "judged": "low",
    },
    "text of one, in a rare app": {"text": filling.RARE_TEXT, "app": filling.QUIET_APP},
    "text in a set, high, a month": {"text": "zzz", "set": "math", "judged": "high", "since": "{month}"},
}
OTHERS: Final = (
    "/admin",
    "/admin?span=quarter&set=math",
    "/admin/candidates",
    "/admin/sets",
    "/admin/sets/math",
    "/admin/sets/math/versions/1",
    "/admin/groups",
    "/admin/training",
    "/admin/training/new",
    "/admin/api/sets",
)


@dataclass
class Page:
    """What a page took, each time: seconds by the clock, and of the processor."""

    name: str
    path: str
    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    size: int = 0


def main() -> int:
    """Measure and print; 1 when a page is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, prog="bench-dashboard")
    parser.add_argument("--exchanges", type=int, default=filling.EXCHANGES, help=f"how many ({filling.EXCHANGES})")
    parser.add_argument("--store", action="append", help="a filled store to use instead; can stand there again")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each page is asked for ({ROUNDS})")
    asked = parser.parse_args()
    slow = False
    with TemporaryDirectory() as folder, _stores(asked.store, Path(folder), asked.exchanges) as urls:
        for url in urls:
            with _proxy(url, Path(folder)) as (port, pid):
                pages = _measured(port, pid, asked.rounds)
            _report(url, pages)
            slow |= any(statistics.median(page.clock) > MOST_SECONDS for page in pages)
    return int(slow)


@contextmanager
def _stores(given: Sequence[str] | None, folder: Path, exchanges: int) -> Iterator[list[str]]:
    """Yield filled stores: those that are given, or a new one of each kind."""
    if given:
        yield list(given)
        return
    with server() as started, started.database() as database:
        urls = [f"sqlite:///{folder / 'pages.db'}", database]
        for url in urls:
            began = time.monotonic()
            filling.fill(url, exchanges)
            _say(f"filled a store of {exchanges} exchanges in {time.monotonic() - began:.0f} s")
        yield urls


@contextmanager
def _proxy(url: str, folder: Path) -> Iterator[tuple[int, int]]:
    port, config = free_port(), folder / "pages.json"
    settings = {"server": {"port": port}, "store": {"url": url}, "outage": {"folder": str(folder / "outage")}}
    config.write_text(json.dumps(settings))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    arguments = [sys.executable, "-m", "proxy", "--config", str(config)]
    with running(arguments, folder / "pages.log", Cores.of_this_machine(), environment) as pid:
        _wait(port)
        yield port, pid


def _wait(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            _get(port, "/health/readiness")
        except OSError:
            time.sleep(0.1)
        else:
            return
    sys.exit("bench-dashboard: the proxy did not start")


def _measured(port: int, pid: int, rounds: int) -> list[Page]:
    pages = [*_lists(), *_opened(port), *(Page(path, path) for path in OTHERS)]
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as line:
        for page in pages * rounds:
            _measure(line, pid, page)
    return pages


def _measure(line: http.client.HTTPConnection, pid: int, page: Page) -> None:
    clock, processor = time.perf_counter(), cpu_seconds(pid)
    line.request("GET", page.path)
    answer = line.getresponse()
    page.size = len(answer.read())
    page.clock.append(time.perf_counter() - clock)
    page.processor.append(cpu_seconds(pid) - processor)
    if answer.status != 200:  # noqa: PLR2004 - HTTP's
        sys.exit(f"bench-dashboard: {page.path} answered {answer.status}")


def _lists() -> Iterator[Page]:
    now = time.time()
    days = {"{month}": _moment(now - 30 * 86400), "{next day}": _moment(now - 29 * 86400)}
    for view in ("trajectories", "exchanges"):
        for name, fields in FILTERS.items():
            said = {field: days.get(value, value) for field, value in fields.items()}
            yield Page(f"{view}: {name}", f"/admin/traffic?{urlencode({'view': view, **said})}")


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.gmtime(seconds))


def _opened(port: int) -> Iterator[Page]:
    """Follow the links of a list: a trajectory, one of its exchanges, the next page."""
    first = _get(port, "/admin/traffic?set=math")
    trajectory = _link(first, "/admin/traffic/trajectory?")
    yield Page("a trajectory", trajectory)
    yield Page("an exchange as sent", _link(_get(port, trajectory), "/admin/traffic/sent?"))
    yield Page("trajectories: the second page", _link(first, "/admin/traffic?", having="behind"))
    oldest = f"/admin/traffic?{urlencode({'until': _moment(time.time() - 80 * 86400)})}"
    yield Page("trajectories: the oldest", oldest)


def _link(page: str, start: str, having: str = "") -> str:
    found = (html.unescape(one) for one in re.findall(r'href="([^"]+)"', page))
    return next(one for one in found if one.startswith(start) and having in one).partition("#")[0]


def _get(port: int, path: str) -> str:
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as line:
        line.request("GET", path)
        return line.getresponse().read().decode()


def _report(url: str, pages: Sequence[Page]) -> None:
    _say(f"\n{url.partition(':')[0].partition('+')[0]}, load {os.getloadavg()[0]:.1f}\n")
    _say("| page | median ms | worst | of the processor | KB |\n|---|---|---|---|---|")
    for page in pages:
        clock, processor = sorted(page.clock), statistics.median(page.processor)
        times = f"{1000 * statistics.median(clock):.0f} | {1000 * clock[-1]:.0f} | {1000 * processor:.0f}"
        _say(f"| {page.name} | {times} | {page.size / 1024:.0f} |")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
