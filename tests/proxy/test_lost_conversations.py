"""Conversations that a worker did not find in time, while another one knew them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tests.proxy.examples import request
from tests.proxy.test_linking import World
from tests.proxy.test_linking import kept as kept
from tests.proxy.test_linking import world as world


@contextlib.contextmanager
def without_links(folder: Path) -> Iterator[None]:
    """Have the store give no answer when it is asked for links."""
    with contextlib.closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as other:
        other.execute("ALTER TABLE links RENAME TO elsewhere")
        try:
            yield
        finally:
            other.execute("ALTER TABLE elsewhere RENAME TO links")


async def test_a_conversation_that_a_peer_did_not_find_goes_on_as_it_began_once_the_store_answers(
    world: World, tmp_path: Path
) -> None:
    await world.deploy(1, 2, {"candidate": 1.0})
    peers = [world.worker(peers=True) for _ in range(3)]
    first = await world.exchange(request("1+1?"), "2", by=peers[0])
    await world.written()
    with without_links(tmp_path):
        lost = await world.exchange(request("1+1?", "2", "more"), "x", by=peers[1])
    assert (first.version, lost.version) == (2, 1)
    for peer in reversed(peers):
        further = await world.exchange(request("1+1?", "2", "more", "x", "and"), "y", by=peer)
        assert further.assignment == first.assignment


async def test_a_conversation_that_nobody_knows_stays_in_the_trajectory_it_was_given(world: World) -> None:
    await world.deploy(1)
    peer = world.worker(peers=True, patience=0.1)
    lost = await world.exchange(request("1+1?", "2", "more"), "x", by=peer)
    assert (await world.exchange(request("1+1?", "2", "more", "x", "and"), "y", by=peer)).assignment == lost.assignment
    assert peer.stats.unanswered == 0
