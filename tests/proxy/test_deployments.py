from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from proxy.deployments import Deployments
from tests.postgresql import Server
from tests.proxy.examples import store
from tfgrpo import library
from tfgrpo.store import Store
from tfgrpo.types import Experience, Library


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = store(tmp_path)
    for text in ("Show each step.", "Check the units."):
        opened.sets.add_version("math", library.from_texts([text]), status="by hand")
    yield opened
    opened.close()


@pytest.fixture
async def deployments(kept: Store) -> AsyncIterator[Deployments]:
    made = Deployments(kept, interval=0.02)
    await made.start()
    yield made
    await made.stop()


def whole(deployments: Deployments, version: int) -> str:
    block = deployments.block("math", version)
    return "" if block is None else block.whole


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what the poller brings about."""
    async with asyncio.timeout(1.0):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


def deploy(kept: Store, live: int | None, candidate: int | None = None) -> None:
    kept.sets.deploy("math", live=live, candidate=candidate, reason="", actor="test")


async def test_a_set_without_a_deployment_has_none(deployments: Deployments) -> None:
    assert deployments.current("math") is None


async def test_a_deployment_made_elsewhere_arrives_by_itself(kept: Store, deployments: Deployments) -> None:
    deploy(kept, 1)
    await until(lambda: deployments.current("math") is not None)
    assert "Show each step." in whole(deployments, 1)


async def test_a_refresh_brings_a_deployment_at_once(kept: Store) -> None:
    deployments = Deployments(kept, interval=3600)
    await deployments.start()
    deploy(kept, 2)
    await deployments.refresh()
    current = deployments.current("math")
    await deployments.stop()
    assert current is not None
    assert current.live == 2


async def test_the_blocks_of_live_and_candidate_are_both_in_memory(kept: Store, deployments: Deployments) -> None:
    deploy(kept, 1, 2)
    await deployments.refresh()
    assert deployments.block("math", 1) != deployments.block("math", 2)


async def test_version_zero_is_the_empty_block(deployments: Deployments) -> None:
    assert whole(deployments, 0) == ""


async def test_a_version_that_is_not_deployed_is_found_in_the_store(deployments: Deployments) -> None:
    assert deployments.block("math", 2) is None
    found = await deployments.find_block("math", 2)
    assert found is not None
    assert "Check the units." in found.whole
    assert deployments.block("math", 2) is not None


async def test_a_version_that_does_not_exist_has_no_block(deployments: Deployments) -> None:
    assert await deployments.find_block("math", 9) is None


async def test_the_revision_of_a_rollback_is_known(kept: Store, deployments: Deployments) -> None:
    deploy(kept, 1)
    deploy(kept, 2)
    kept.sets.rollback("math", reason="", actor="test")
    await deployments.refresh()
    assert deployments.newest_rollback("math") == 3
    current = deployments.current("math")
    assert current is not None
    assert current.live == 1


async def test_what_is_known_stays_when_the_store_does_not_answer(
    tmp_path: Path, kept: Store, deployments: Deployments, caplog: pytest.LogCaptureFixture
) -> None:
    deploy(kept, 1)
    await deployments.refresh()
    with sqlite3.connect(tmp_path / "store.db", isolation_level=None) as other:
        other.execute("DROP TABLE meta")
    other.close()
    with caplog.at_level(logging.ERROR):
        await deployments.refresh()
        await deployments.refresh()
    current = deployments.current("math")
    assert current is not None
    assert current.live == 1
    assert len(caplog.records) == 1


async def test_a_status_that_changes_keeps_the_same_block_text(kept: Store, deployments: Deployments) -> None:
    deploy(kept, 1)
    await deployments.refresh()
    before = deployments.block("math", 1)
    kept.sets.set_status("math", 1, "helps")
    await deployments.refresh()
    assert deployments.block("math", 1) is before


async def test_an_entry_that_holds_a_secret_is_left_out_counted_and_named_without_it(
    kept: Store, caplog: pytest.LogCaptureFixture
) -> None:
    kept.sets.add_version("math", library.from_texts(["Say open-sesame first.", "Be brief."]), status="by hand")
    deploy(kept, 3)
    made = Deployments(kept, interval=3600, ours=("open-sesame",))
    with caplog.at_level(logging.WARNING):
        await made.refresh()
    block = whole(made, 3)
    assert ("Be brief." in block, "open-sesame" in block) == (True, False)
    assert made.left_out == 1
    assert "math@3: entry e1 is not injected" in caplog.text
    assert "open-sesame" not in caplog.text
    await made.refresh()
    pinned = await made.find_block("math", 3)
    assert (pinned is not None, made.left_out) == (True, 1)
    await made.stop()


async def test_nothing_is_injected_of_a_library_that_holds_nothing_else(kept: Store) -> None:
    kept.sets.add_version("math", library.from_texts(["Say open-sesame first."]), status="by hand")
    made = Deployments(kept, interval=3600, ours=("open-sesame",))
    found = await made.find_block("math", 3)
    assert found is not None
    assert found.whole == ""
    await made.stop()


async def test_a_version_that_is_read_while_something_of_it_is_withdrawn_is_read_anew(postgresql: Server) -> None:
    with postgresql.database() as url, closing(Store.open(url, migrate=True)) as shared:
        entries = (Experience("e1", "Check units.", ("g",)), Experience("e2", "Skip units.", ("bad",)))
        shared.sets.add_version("math", Library(entries, 3), status="by hand")
        made = Deployments(shared, interval=3600)
        await made.start()
        shared.withdrawals.withdraw("source", "bad", reason="", actor="test", deploy=False)
        dsn = url.replace("+psycopg", "")
        with psycopg.connect(dsn) as other:
            # Whoever reads a version waits from here on; what says which entries were withdrawn is read meanwhile.
            other.execute("LOCK TABLE versions IN ACCESS EXCLUSIVE MODE")
            asked = asyncio.create_task(made.find_block("math", 1))
            await asyncio.sleep(0)
            await made.refresh()
            assert not asked.done()
        found = await asked
        assert found is not None
        assert ("Check units." in found.whole, "Skip units." in found.whole) == (True, False)
        assert made.block("math", 1) is found
        await made.stop()
