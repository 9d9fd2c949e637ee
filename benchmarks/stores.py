"""How many exchanges and labels a second each store takes here: `make bench-stores`.

One process writes as the proxy's threads do: exchanges of two kilobytes with their links in batches of 300, then labels
of which 256 share one durable transaction. PostgreSQL is a server on this machine that waits for the disk.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from sqlalchemy.engine import make_url

from tests.postgresql import server
from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Link

EXCHANGES = 300
"""In one batch."""

LABELS = 256
BODY = 1000


def batch(start: int) -> Batch:
    """Return the batch that begins with this number: a trajectory and two links for each exchange."""
    numbers = range(start, start + EXCHANGES)
    return Batch(
        tuple((exchange(n, trajectory=f"t-{n}"), Bodies(os.urandom(BODY // 2) * 2, b"a" * BODY)) for n in numbers),
        tuple(assignment(n) for n in numbers),
        tuple(Link(f"{part}-{n}", "default", f"t-{n}", f"ex-{n}", float(n)) for n in numbers for part in "kl"),
    )


def rates(url: str, seconds: float) -> tuple[float, float]:
    """Return the exchanges and the labels a second that a fresh store takes."""
    with closing(Store.open(url, migrate=True)) as store:
        written, spent = 0, 0.0
        while spent < seconds:
            one = batch(written)
            begun = time.perf_counter()
            store.traffic.add(one)
            spent += time.perf_counter() - begun
            written += EXCHANGES
        labelled, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            store.labels.add([label(number) for number in range(labelled, labelled + LABELS)])
            labelled += LABELS
        return written / spent, labelled / (time.perf_counter() - begun)


@contextmanager
def stores() -> Iterator[dict[str, str]]:
    """Yield the address of a fresh store of each kind."""
    with TemporaryDirectory() as folder, server() as started, started.database() as url:
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain, autocommit=True) as connection:
            # The tests' server waits for no disk; a measured one must.
            connection.execute("ALTER SYSTEM SET fsync = on")
            connection.execute("SELECT pg_reload_conf()")
        yield {"SQLite": f"sqlite:///{Path(folder) / 'store.db'}", "PostgreSQL": url}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of writing, for each number")
    options = parser.parse_args()
    sys.stdout.write("| store | exchanges/s | labels/s |\n|---|---|---|\n")
    with stores() as urls:
        for name, url in urls.items():
            exchanges, labels = rates(url, options.seconds)
            sys.stdout.write(f"| {name} | {exchanges:,.0f} | {labels:,.0f} |\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
