"""A store of a million exchanges, quickly: what pages, commands and queries are measured on.

Rows go in by the database's own fastest way, without the indexes, which are made again afterwards. The traffic is that
of ninety days and three apps: conversations of one to twelve exchanges with their bodies, five sets under deployment
with a candidate and a control arm, labels on three trajectories in ten. A few things are rare on purpose, and old,
which is the worst case for whoever looks from the newest on: see the constants.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import zstandard
from msgspec.structs import asdict
from sqlalchemy import Connection
from sqlalchemy.engine import make_url

from tfgrpo.store import Store, migrations
from tfgrpo.store.engine import Database
from tfgrpo.types import Assignment, Exchange, Experience, Label, Library, Outcome

EXCHANGES: Final = 1_000_000
DAYS: Final = 90
AT_ONCE: Final = 20_000
"""Rows of a table that go in together."""

SETS: Final = ("support", "math", "coding", "legal", "search")
RARE_SET: Final = "rare"
"""A set with one trajectory in five thousand."""

QUIET_APP: Final = "quiet"
"""An app whose traffic, one trajectory in a hundred, all lies in the oldest tenth, and is not labelled."""

RARE_MODEL: Final = "retired-model"
"""A model that answered the very first trajectory, and no other."""

RARE_TEXT: Final = "quixotic zebra"
"""A text that the very first trajectory says, and no other."""

MODELS: Final = ("gpt-4o-mini", "gpt-4o", "claude-sonnet-4-5", "llama-3.3-70b")
ARMS: Final = ("live", "candidate", "control", "pinned", "none", "unknown")
OUTCOMES: Final[tuple[Outcome, ...]] = ("complete", "failed", "aborted", "broken")
_ARM_WEIGHTS: Final = (78, 9, 9, 1, 2, 1)
_PROSE: Final = (
    "order refund invoice shipment password account error stack trace function integral matrix clause contract "
    "search result please check again the a of and with without before after customer server token window answer"
)
_WORDS: Final = tuple(_PROSE.split())
_TABLES: Final = ("exchanges", "bodies", "trajectories", "labels")


def main() -> int:
    """Fill the store that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, prog="filling")
    parser.add_argument("store", help="sqlite:///FILE or postgresql://..., empty or not there yet")
    parser.add_argument("--exchanges", type=int, default=EXCHANGES, help=f"how many ({EXCHANGES})")
    asked = parser.parse_args()
    began = time.monotonic()
    fill(asked.store, asked.exchanges)
    sys.stdout.write(f"{asked.exchanges} exchanges in {time.monotonic() - began:.0f} s\n")
    return 0


def fill(url: str, count: int = EXCHANGES, *, seed: int = 0, until: float | None = None) -> None:
    """Make a store of `count` exchanges at `url`, an empty or new database; `until`: when the last one ended (now)."""
    with closing(Store.open(url, migrate=True)) as store:
        _deploy(store)
    insert(url, _rows(count, random.Random(seed), until or time.time()))  # noqa: S311 - no secret
    with closing(Database(url, migrate=False)) as database:
        database.write(_add_up)


def insert(url: str, rows: Iterator[tuple[str, dict[str, Any]]]) -> None:
    """Put rows of recorded traffic, each with its table's name, into a store that is there; it compresses bodies."""
    writer = _Sqlite(url) if make_url(url).get_backend_name() == "sqlite" else _Postgresql(url)
    with closing(writer):
        batches: dict[str, list[dict[str, Any]]] = {name: [] for name in _TABLES}
        for table, row in rows:
            batches[table].append(row)
            if len(batches[table]) == AT_ONCE:
                writer.insert(table, _packed(table, batches[table]))
                batches[table] = []
        for table, some in batches.items():
            if some:
                writer.insert(table, _packed(table, some))
        writer.finish()


def _add_up(connection: Connection) -> None:
    """Add traffic up by the hour as the step of the schema does that brings it to a store with traffic."""
    for statement in (one for step in migrations.STEPS for one in step):
        if isinstance(statement, str) and statement.startswith("INSERT INTO hours"):
            migrations.take(connection, statement)


def _deploy(store: Store) -> None:
    """Give each set three versions, and an experiment between the last two and none."""
    for name in (*SETS, RARE_SET):
        for number in range(1, 4):
            lessons = tuple(Experience(f"e{at}", f"Lesson {at} of {name}, version {number}.") for at in range(1, 21))
            store.sets.add_version(name, Library(lessons, 21), parent=number - 1 or None, status="unproven")
        store.sets.deploy(
            name, live=2, candidate=3, shares={"candidate": 0.1, "control": 0.1}, reason="filled", actor="benchmark"
        )


@dataclass
class _Telling:
    """What one trajectory is, while its rows are made."""

    given: Assignment
    luck: random.Random
    rare: bool
    said: list[dict[str, str]] = field(default_factory=list)

    def words(self, count: int) -> str:
        return " ".join(self.luck.choices(_WORDS, k=count))


def _rows(count: int, luck: random.Random, until: float) -> Iterator[tuple[str, dict[str, Any]]]:
    apart = DAYS * 86400 / count
    began, made = until - DAYS * 86400, 0
    group = ""
    while made < count:
        length = min(luck.choices((1, 2, 3, 4, 6, 12), (40, 20, 12, 12, 10, 6))[0], count - made)
        if luck.random() < 0.3 or not group:  # noqa: PLR2004 - three rollouts a task
            group = f"{luck.getrandbits(128):032x}"
        telling = _Telling(_given(made, count, began + made * apart, group, luck), luck, rare=made == 0)
        yield "trajectories", asdict(telling.given)
        parent = None
        for turn in range(length):
            exchange = _exchange(telling, turn, parent, apart)
            parent = exchange.id
            yield "exchanges", asdict(exchange)
            if exchange.record == "full":
                yield "bodies", _bodies(telling, exchange)
        yield from (("labels", asdict(label)) for label in _labels(telling, parent or ""))
        made += length


def _given(made: int, count: int, started: float, group: str, luck: random.Random) -> Assignment:
    old = made < count // 10
    app = QUIET_APP if old and luck.random() < 0.1 else luck.choices(("default", "shop", "desk"), (70, 20, 10))[0]  # noqa: PLR2004 - a tenth
    chance = luck.random()
    set_name = RARE_SET if chance < 0.0002 else None if chance < 0.1 else luck.choice(SETS)  # noqa: PLR2004 - shares
    arm = luck.choices(ARMS, _ARM_WEIGHTS)[0] if set_name else "none"
    version = {"candidate": 3, "control": 0, "none": 0}.get(arm, 2) if set_name else 0
    model = luck.choice(MODELS) if made else RARE_MODEL
    probability = {"live": 0.8, "candidate": 0.1, "control": 0.1}.get(arm)
    name = f"{luck.getrandbits(128):032x}"
    return Assignment(name, app, set_name, version, arm, probability, 1, group, model, started)  # type: ignore[arg-type]


def _exchange(telling: _Telling, turn: int, parent: str | None, apart: float) -> Exchange:
    given, luck = telling.given, telling.luck
    started = given.started_at + turn * apart * 0.9
    outcome = luck.choices(OUTCOMES, (960, 25, 10, 5))[0]
    status = {"complete": 200, "failed": luck.choice((429, 500, 502)), "broken": 200}.get(outcome)
    took = luck.lognormvariate(0.3, 0.8)
    return Exchange(
        f"ex-{int(started * 1000):012x}{luck.getrandbits(232):058x}", given.app, given.set, given.version, given.arm,
        given.trajectory, given.group, "chat", "POST", "/v1/chat/completions", given.model, "openai", "", outcome,
        status, started, started + took / 3, started + took, completion_id=f"chatcmpl-{luck.getrandbits(96):024x}",
        prompt_tokens=120 + 90 * turn, completion_tokens=luck.randrange(10, 200), parent=parent,
        finish_reason="stop" if outcome == "complete" else None,
        record="metadata" if luck.random() < 0.02 else "full",  # noqa: PLR2004 - one in fifty
    )  # fmt: skip


def _bodies(telling: _Telling, exchange: Exchange) -> dict[str, Any]:
    said = telling.said
    if not said:
        said.append({"role": "system", "content": "You are a helpful agent. " + telling.words(20)})
    said.append({"role": "user", "content": telling.words(30) + (f" {RARE_TEXT}" if telling.rare else "")})
    request = json.dumps({"model": exchange.model, "messages": said}).encode()
    message = {"role": "assistant", "content": telling.words(40)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    said.append(message)
    answer = json.dumps({"id": exchange.completion_id, "object": "chat.completion", "choices": [choice]}).encode()
    return {
        "exchange": exchange.id,
        "request": request,
        "response": answer,
        "request_encoding": "",
        "response_encoding": "",
        "response_type": "application/json",
        "created_at": exchange.started_at,
    }


def _labels(telling: _Telling, last: str) -> Iterator[Label]:
    given, luck = telling.given, telling.luck
    if given.app == QUIET_APP or luck.random() > 0.3:  # noqa: PLR2004 - three in ten
        return
    lift = 0.15 if given.version else 0.0
    value = float(luck.random() < 0.5 + lift)
    on_exchange = luck.random() < 0.5  # noqa: PLR2004 - half
    exchange, trajectory = (last, None) if on_exchange else (None, given.trajectory)
    name, comment = f"fb-{luck.getrandbits(128):032x}", "as it should be" if value else None
    yield Label(name, given.app, exchange, trajectory, 0, "reward", value, "user", "", given.started_at + 60, comment)


def _packed(table: str, rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Compress bodies, many by one call, as the store does."""
    if table == "bodies":
        raw = [row[name] for row in rows for name in ("request", "response")]
        packed = zstandard.ZstdCompressor(level=1).multi_compress_to_buffer(raw)
        for at, row in enumerate(rows):
            row["request"], row["response"] = packed[2 * at].tobytes(), packed[2 * at + 1].tobytes()
    return rows


class _Sqlite:
    """Fills a file in one transaction that waits for no disk."""

    def __init__(self, url: str) -> None:
        self._database = sqlite3.connect(make_url(url).database or "", isolation_level=None)
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute("PRAGMA cache_size=-1000000")
        self._database.execute("BEGIN")
        marks = ", ".join("?" * len(_TABLES))
        found = (
            f"SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ({marks})"  # noqa: S608 - marks
        )
        self._indexes = dict(self._database.execute(found, _TABLES).fetchall())
        for name in self._indexes:
            self._database.execute(f"DROP INDEX {name}")

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        names = list(rows[0])
        columns, marks = ", ".join(f'"{name}"' for name in names), ", ".join("?" * len(names))
        statement = f"INSERT INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608 - names of our schema
        self._database.executemany(statement, [tuple(row.values()) for row in rows])

    def finish(self) -> None:
        for statement in self._indexes.values():
            self._database.execute(statement)
        self._database.execute("COMMIT")
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._database.close()


class _Postgresql:
    """Fills a database by COPY, in one transaction."""

    def __init__(self, url: str) -> None:
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connection = psycopg.connect(plain)
        found = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY(%s) AND indexname NOT LIKE '%%_pkey'"
        self._indexes: dict[str, str] = dict(self._connection.execute(found, (list(_TABLES),)).fetchall())
        for name in self._indexes:
            self._connection.execute(f"DROP INDEX {name}".encode())

    def insert(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        columns = ", ".join(f'"{name}"' for name in rows[0])
        with self._connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(tuple(row.values()))

    def finish(self) -> None:
        for statement in self._indexes.values():
            self._connection.execute(statement.encode())
        self._connection.commit()
        self._connection.autocommit = True
        # As autovacuum does it, soon, on a server that runs for a while.
        self._connection.execute("VACUUM ANALYZE")

    def close(self) -> None:
        self._connection.close()


if __name__ == "__main__":
    sys.exit(main())
