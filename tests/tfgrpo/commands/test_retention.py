from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.tfgrpo.store.examples import assignment, exchange, label
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import run, url
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies

DAY = 86400.0
AGES = "retention: {bodies: 1d, labels: 30d, metadata: 100d}\n"


@pytest.fixture
def aged(home: Path) -> Path:
    """Four exchanges of a half, 10, 50 and 200 days ago, each with its bodies and a label of that time."""
    store = Store.open(url(home), migrate=True)
    now = time.time()
    for number, days in enumerate((0.5, 10, 50, 200), 1):
        at = now - days * DAY
        one = exchange(number, started_at=at)
        store.traffic.add(Batch(((one, Bodies(b"{}", b"{}")),), (assignment(number, started_at=at),)))
        store.labels.add([label(number, created_at=at)])
    store.close()
    (home / "config.yaml").write_text(AGES)
    return home


async def test_what_is_too_old_is_shown_and_stays(aged: Path) -> None:
    code, out, _ = await run(aged, "retention", "--json")
    found = json.loads(out)
    assert (code, found["dry_run"]) == (0, True)
    assert (found["exchanges"], found["bodies"], found["labels"]) == (1, 3, 2)
    assert "too old: 1 exchanges, 3 bodies, 2 labels" in (await run(aged, "retention", "show"))[1]


async def test_each_kind_goes_at_its_own_age(aged: Path) -> None:
    code, out, _ = await run(aged, "retention", "run", "--json")
    found = json.loads(out)
    assert (code, found["exchanges"], found["bodies"], found["labels"]) == (0, 1, 3, 2)
    assert json.loads((await run(aged, "retention", "--json"))[1])["bodies"] == 0
    store = Store.open(url(aged))
    kept = {one.id: one.record for one in store.traffic.page(limit=9)}
    store.close()
    assert kept == {"ex-1": "full", "ex-2": "expired", "ex-3": "expired"}


async def test_without_an_age_nothing_is_run(home: Path) -> None:
    code, _, err = await run(home, "retention", "run")
    assert (code, "set retention.bodies" in err) == (2, True)


async def test_bodies_cannot_outlive_what_they_belong_to(home: Path) -> None:
    ages = "retention: {bodies: 2d, metadata: 1d}\n"
    (home / "config.yaml").write_text(ages)
    code, _, err = await run(home, "retention")
    assert (code, "bodies cannot be kept for longer than metadata" in err) == (2, True)


async def test_groups_say_how_many_trajectories_lost_their_bodies(aged: Path) -> None:
    await run(aged, "retention", "run")
    assert "2 trajectories are left out" in (await run(aged, "groups"))[1]
    assert json.loads((await run(aged, "groups", "--json"))[1])["without_bodies"] == 2
