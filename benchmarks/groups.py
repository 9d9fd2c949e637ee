"""`make bench-groups`: how long it takes, and how much memory, to form groups from 1,000,000 recorded exchanges.

It makes a store of its own: one exchange a trajectory and one label an exchange, the most rows that so many exchanges
can come to. Three quarters are groups of five rollouts, of which half contrast; the rest are tasks asked once. Only
those have bodies: forming groups reads no others. Times are of processes of their own. Fails (exit status 1) when
the goal of issue 4 is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import zstandard
from msgspec.structs import asdict

from tfgrpo import traffic
from tfgrpo.store import Store
from tfgrpo.types import Assignment, Exchange, Label

EXCHANGES: Final = 1_000_000
ROLLOUTS: Final = 5
LONELY: Final = 4
"""One exchange in so many is of a task that was asked once."""
AT_ONCE: Final = 10_000

MOST_SECONDS: Final = 5.0
MOST_MIB: Final = 500.0

ANSWER: Final = (
    b'{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}'
)


@dataclass(frozen=True, slots=True)
class Took:
    """What one way of forming groups took: seconds by the clock, of a processor, MiB at the most, groups found."""

    name: str
    seconds: float
    processor: float
    mib: float
    groups: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, prog="bench-groups")
    parser.add_argument("--exchanges", type=int, default=EXCHANGES, help=f"how many are recorded ({EXCHANGES})")
    parser.add_argument("--store", type=Path, help="a file to keep the store in, used again when it is there")
    parser.add_argument("--one", choices=sorted(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.fill:
        fill(asked.store, asked.exchanges)
        return 0
    if asked.one is not None:
        return _form(asked.one, asked.store)
    with tempfile.TemporaryDirectory() as folder:
        store = asked.store or Path(folder) / "groups.db"
        if not store.exists():
            started = time.monotonic()
            # In a process of its own: a child begins with the most memory that its parent ever had.
            _run("--fill", "--exchanges", str(asked.exchanges), "--store", str(store))
            _say(f"made a store of {asked.exchanges} exchanges in {time.monotonic() - started:.0f} s")
        found = [_measured(name, store) for name in WAYS]
    _say("| way | seconds | of a processor | MiB | groups |\n|---|---|---|---|---|")
    for one in found:
        _say(f"| {one.name} | {one.seconds:.2f} | {one.processor:.2f} | {one.mib:.0f} | {one.groups} |")
    return int(any(one.seconds > MOST_SECONDS or one.mib > MOST_MIB for one in found))


def fill(path: Path, count: int, *, seed: int = 0) -> None:
    """Make a store of `count` exchanges at `path`."""
    Store.open(f"sqlite:///{path}", migrate=True).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous=OFF")
        database.execute("PRAGMA cache_size=-1000000")
        database.execute("BEGIN")
        batches: dict[str, list[dict[str, Any]]] = {}
        for number, (table, row) in enumerate(_rows(count, random.Random(seed)), 1):  # noqa: S311 - no secret
            batches.setdefault(table, []).append(row)
            if number % AT_ONCE == 0:
                _insert(database, batches)
        _insert(database, batches)
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _insert(database: sqlite3.Connection, batches: dict[str, list[dict[str, Any]]]) -> None:
    for table, rows in batches.items():
        names = list(rows[0])
        columns, marks = ", ".join(f'"{name}"' for name in names), ", ".join("?" for _ in names)
        database.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", [[*row.values()] for row in rows])  # noqa: S608
    batches.clear()


def _rows(count: int, luck: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    pack = zstandard.ZstdCompressor().compress
    group, contrasting = "", False
    together = count - count // LONELY
    for number in range(count):
        lonely = number >= together
        if lonely or number % ROLLOUTS == 0:
            group, contrasting = f"{luck.getrandbits(128):032x}", luck.random() < 0.5  # noqa: PLR2004 - half
        trajectory, now = f"{luck.getrandbits(128):032x}", 1e9 + number
        name = f"{luck.getrandbits(128):032x}"
        yield (
            "exchanges",
            asdict(
                Exchange(
                    name, "default", "math", 1, "live", trajectory, group, "chat", "POST", "/v1/chat/completions",
                    "gpt-4o-mini", "openai", "", "complete", 200, now, now, now,
                    completion_id=f"chatcmpl-{trajectory}", prompt_tokens=100, completion_tokens=20,
                )
            ),
        )  # fmt: skip
        yield (
            "trajectories",
            asdict(Assignment(trajectory, "default", "math", 1, "live", 0.9, 1, group, "gpt-4o-mini", now)),
        )
        reward = float(number % 2) if contrasting else 1.0
        yield (
            "labels",
            asdict(Label(f"fb-{name}", "default", name, None, 0, "reward", reward, "user", "", now)),
        )
        if lonely:
            asked = json.dumps({"messages": [{"role": "user", "content": f"What is {number} + 1?"}]}).encode()
            yield (
                "bodies",
                {
                    "exchange": name,
                    "request": pack(asked),
                    "response": pack(ANSWER),
                    "request_encoding": "",
                    "response_encoding": "",
                    "response_type": "application/json",
                    "created_at": now,
                },
            )


def _census(store: Store) -> int:
    return traffic.census(store, set_name="math").contrasting


def _labelled(store: Store) -> int:
    return len(traffic.groups_worth(store, set_name="math"))


WAYS: Final = {"tfgrpo groups": _census, "groups to learn from": _labelled}


def _form(name: str, path: Path) -> int:
    """Form groups one way, in this process, and say how many and what it took."""
    store = Store.open(f"sqlite:///{path}")
    started = time.monotonic()
    groups = WAYS[name](store)
    seconds = time.monotonic() - started
    store.close()
    used = resource.getrusage(resource.RUSAGE_SELF)
    _say(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, groups]))
    return 0


def _measured(name: str, path: Path) -> Took:
    return Took(name, *json.loads(_run("--one", name, "--store", str(path))))


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.groups", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ))  # noqa: S603
    return done.stdout


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a program's output


if __name__ == "__main__":
    sys.exit(main())
