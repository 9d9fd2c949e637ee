"""`make bench-groups`: how long it takes, and how much memory, to form groups from 1,000,000 recorded exchanges.

It makes stores of its own: one exchange a trajectory and a label or more an exchange, the most rows that so many
exchanges can come to. Three quarters are groups of five rollouts, of which half contrast; the rest are tasks asked
once. Only those have bodies: forming groups reads no others. Times are of processes of their own. Fails (exit status 1)
when the goal of issue 4 is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec.structs import asdict

from benchmarks import filling
from tests.postgresql import server
from tfgrpo import traffic
from tfgrpo.store import Store
from tfgrpo.teaching import Teaching
from tfgrpo.types import Assignment, Exchange, Label
from tfgrpo.weighing import REWARD_ONLY, Metric, Metrics

EXCHANGES: Final = 1_000_000
ROLLOUTS: Final = 5
LONELY: Final = 4
"""One exchange in so many is of a task that was asked once."""

KEYS: Final = 20
"""So many keys made the traffic, and one more judges it. Of one label in ten, the key is that of the exchange."""

MOST_SECONDS: Final = 5.0
MOST_MIB: Final = 500.0

ANSWER: Final = (
    b'{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}'
)

TWO: Final[Metrics] = {"reward": Metric(), "tone": Metric(0.5, worst=1.0, best=0.0)}


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked of which store. `labels` says what the exchanges of one task are labelled with, in turn."""

    labels: tuple[tuple[str, ...], ...]
    metrics: Metrics
    own_labels: bool = True

    @property
    def store(self) -> str:
        """The name of the store that it needs."""
        return "-".join("+".join(metrics) for metrics in self.labels)


CASES: Final[Mapping[str, Case]] = {
    "plain": Case((("reward",),), REWARD_ONLY),
    "own": Case((("reward",),), REWARD_ONLY, own_labels=False),
    "two": Case((("reward",), ("tone",)), TWO),
    "both": Case((("reward", "tone"),), TWO),
}
"""Labels of one metric; without those by the key that made the traffic; two metrics, of which each task has one; both
on each exchange."""


@dataclass(frozen=True, slots=True)
class Took:
    """What one way of forming groups took: seconds by the clock, of a processor, MiB at the most, groups found."""

    way: str
    seconds: float
    processor: float
    mib: float
    groups: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, prog="bench-groups")
    parser.add_argument("--exchanges", type=int, default=EXCHANGES, help=f"how many are recorded ({EXCHANGES})")
    parser.add_argument("--case", action="append", choices=CASES, help="which of the cases, repeatable (all)")
    parser.add_argument("--postgresql", action="store_true", help="on a PostgreSQL server of its own, not SQLite")
    parser.add_argument("--store", type=Path, help="a folder to keep the files of SQLite in, used again when there")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.fill:
        fill(asked.fill[0], asked.exchanges, CASES[asked.fill[1]].labels)
        return 0
    if asked.one:
        return _form(*asked.one)
    _say("| case | way | seconds | of a processor | MiB | groups |\n|---|---|---|---|---|---|")
    missed = False
    with ExitStack() as stack:
        folder = asked.store or Path(stack.enter_context(TemporaryDirectory()))
        folder.mkdir(exist_ok=True)
        started = stack.enter_context(server()) if asked.postgresql else None
        urls: dict[str, str] = {}
        for name in asked.case or CASES:
            store = CASES[name].store
            if store not in urls:
                file = folder / f"{store}.db"
                url = f"sqlite:///{file}" if started is None else stack.enter_context(started.database())
                urls[store] = _filled(url, name, asked.exchanges, there=started is None and file.exists())
            missed |= _misses(name, urls[store])
    return int(missed)


def _filled(url: str, name: str, count: int, *, there: bool) -> str:
    if not there:
        # In a process of its own: a child begins with the most memory that its parent ever had.
        _run("--exchanges", str(count), "--fill", url, name)
    return url


def _misses(name: str, url: str) -> bool:
    """Measure a case each way, and say whether one misses the goal."""
    missed = False
    for way in WAYS:
        one = Took(way, *json.loads(_run("--one", url, name, way)))
        _say(f"| {name} | {way} | {one.seconds:.2f} | {one.processor:.2f} | {one.mib:.0f} | {one.groups} |")
        missed |= one.seconds > MOST_SECONDS or one.mib > MOST_MIB
    return missed


def fill(url: str, count: int, labels: Sequence[Sequence[str]], *, seed: int = 0) -> None:
    """Make a store of `count` exchanges at `url`."""
    Store.open(url, migrate=True).close()
    filling.insert(url, _rows(count, labels, random.Random(seed)))  # noqa: S311 - no secret


def _rows(count: int, labels: Sequence[Sequence[str]], luck: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    group, contrasting, task = "", False, 0
    together = count - count // LONELY
    keys = [f"{luck.getrandbits(128):032x}" for _ in range(KEYS + 1)]
    for number in range(count):
        lonely = number >= together
        if lonely or number % ROLLOUTS == 0:
            group, contrasting, task = f"{luck.getrandbits(128):032x}", luck.random() < 0.5, task + 1  # noqa: PLR2004 - half
        trajectory, now = f"{luck.getrandbits(128):032x}", 1e9 + number
        name, key = f"{luck.getrandbits(128):032x}", keys[luck.randrange(KEYS)]
        yield (
            "exchanges",
            asdict(
                Exchange(
                    name, "default", "math", 1, "live", trajectory, group, "chat", "POST", "/v1/chat/completions",
                    "gpt-4o-mini", "openai", key, "complete", 200, now, now, now,
                    completion_id=f"chatcmpl-{trajectory}", prompt_tokens=100, completion_tokens=20,
                )
            ),
        )  # fmt: skip
        yield (
            "trajectories",
            asdict(Assignment(trajectory, "default", "math", 1, "live", 0.9, 1, group, "gpt-4o-mini", now)),
        )
        judge = key if luck.random() < 0.1 else keys[KEYS]  # noqa: PLR2004 - a tenth
        reward = float(number % 2) if contrasting else 1.0
        for metric in labels[task % len(labels)]:
            row = Label(f"fb-{metric}-{name}", "default", name, None, 0, metric, reward, "user", judge, now)
            yield "labels", asdict(row)
        if lonely:
            asked = json.dumps({"messages": [{"role": "user", "content": f"What is {number} + 1?"}]}).encode()
            yield (
                "bodies",
                {
                    "exchange": name,
                    "request": asked,
                    "response": ANSWER,
                    "request_encoding": "",
                    "response_encoding": "",
                    "response_type": "application/json",
                    "created_at": now,
                },
            )


def _census(store: Store, metrics: Metrics, teaching: Teaching) -> int:
    return traffic.census(store, set_name="math", metrics=metrics, teaching=teaching).contrasting


def _labelled(store: Store, metrics: Metrics, teaching: Teaching) -> int:
    return len(traffic.groups_worth(store, set_name="math", metrics=metrics, teaching=teaching))


WAYS: Final = {"tfgrpo groups": _census, "groups to learn from": _labelled}


def _form(url: str, name: str, way: str) -> int:
    """Form groups one way, in this process, and say how many and what it took."""
    case = CASES[name]
    with closing(Store.open(url)) as store:
        started = time.monotonic()
        groups = WAYS[way](store, case.metrics, Teaching(own_labels=case.own_labels, max_share=0.5))
        seconds = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    _say(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, groups]))
    return 0


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.groups", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ))  # noqa: S603
    return done.stdout


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a program's output


if __name__ == "__main__":
    sys.exit(main())
