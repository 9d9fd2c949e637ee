"""What a worker learns from the store of what it did not see itself."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path

from proxy.clues import Evidence, clues
from proxy.link_cache import LinkCache
from proxy.recall import PATIENCE, Recall
from tests.proxy.examples import assignment, request, store
from tfgrpo.store import Batch
from tfgrpo.types import Link


async def test_what_the_store_answers_in_time_counts_though_the_worker_is_too_busy_to_look(tmp_path: Path) -> None:
    cache, found = LinkCache(), clues(Evidence("default", "math", request("1+1?", "2", "more")))
    key = found.chain[0].key
    link = Link(key, "default", "t-1", "ex-1", time.time())
    with closing(store(tmp_path)) as kept:
        kept.traffic.add(Batch(assignments=(assignment("t-1"),), links=(link,)))
        recall = Recall(kept, cache, peers=False)
        bringing = asyncio.create_task(recall.bring(found))
        await asyncio.sleep(0)
        busy_until = time.monotonic() + 4 * PATIENCE
        while time.monotonic() < busy_until:
            pass
        assert await bringing
        recall.close()
    assert [node.exchange for node in cache.find(key)] == ["ex-1"]
