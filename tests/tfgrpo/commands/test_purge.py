from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.store.examples import assignment, exchange, label
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import run, url
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Experience, Library, Pending


def bodies(**request: Any) -> Bodies:
    return Bodies(json.dumps(request).encode(), b"", "", "", "")


@pytest.fixture
def filled(home: Path) -> Path:
    store = Store.open(url(home), migrate=True)
    turns = ((exchange(1), bodies(user="ann")), (exchange(2, trajectory="t-1"), bodies()), (exchange(3), bodies()))
    store.traffic.add(Batch(turns, (assignment(1), assignment(3, group="other"))))
    store.labels.add([label(1), label(3)])
    library = Library((Experience("e1", "Check the sign.", ("g@2",)), Experience("e2", "Be brief.", ("h",))), 3)
    store.sets.add_version("math", library, status="by hand")
    store.close()
    return home


async def test_all_turns_of_an_end_users_trajectory_go_and_lessons_are_named(filled: Path) -> None:
    code, out, _ = await run(filled, "purge", "--end-user", "ann", "--json")
    found = json.loads(out)
    assert (code, found["exchanges"], found["labels"], found["trajectories"]) == (0, 2, 1, 1)
    assert [(one["id"], one["versions"]) for one in found["entries"]] == [("e1", [1])]


async def test_pending_lessons_that_rest_on_it_go_with_it(filled: Path) -> None:
    store = Store.open(url(filled))
    store.pending.replace("math", [Pending("a", ("g@0",), 1, {}, ()), Pending("b", ("h@0",), 1, {}, ())])
    for dry, left in (("--dry-run", ["a", "b"]), ("--json", ["b"])):
        await run(filled, "purge", "--end-user", "ann", dry)
        assert [one.text for one in store.pending.of("math")] == left
    store.close()


async def test_a_dry_run_counts_and_erases_nothing(filled: Path) -> None:
    code, out, _ = await run(filled, "purge", "--app", "default", "--dry-run")
    assert (code, "would erase: 3 exchanges, 3 bodies, 2 labels, 0 links, 2 trajectories" in out) == (0, True)
    assert "erased: 3 exchanges" in (await run(filled, "purge", "--app", "default"))[1]


async def test_only_what_began_before_a_date_goes(filled: Path) -> None:
    _, out, _ = await run(filled, "purge", "--before", "1970-01-01T00:00:02", "--json")
    assert json.loads(out)["exchanges"] == 1


@pytest.mark.parametrize("arguments", [(), ("--before", "soon")])
async def test_a_purge_of_nothing_in_particular_is_refused_in_one_line(
    filled: Path, arguments: tuple[str, ...]
) -> None:
    code, out, err = await run(filled, "purge", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
