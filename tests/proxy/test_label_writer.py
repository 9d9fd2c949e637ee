from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proxy.label_writer import LabelWriter
from tests.proxy.examples import exchange, label, store
from tfgrpo.errors import Conflict, StoreError
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = store(tmp_path)
    opened.traffic.add(Batch(exchanges=((exchange("ex-1"), Bodies()),)))
    yield opened
    opened.close()


@pytest.fixture
def writer(kept: Store) -> Iterator[LabelWriter]:
    made = LabelWriter(kept)
    made.start()
    yield made
    made.stop()


def stored(kept: Store) -> set[str]:
    return {one.feedback_id for one in kept.labels.of_trajectory("default", "t-1")}


async def test_labels_are_in_the_store_when_they_are_answered(kept: Store, writer: LabelWriter) -> None:
    assert await writer.add([label("a"), label("b")]) == ["stored", "stored"]
    assert stored(kept) == {"a", "b"}


async def test_of_posts_that_share_a_transaction_only_the_conflicting_one_fails(
    kept: Store, writer: LabelWriter
) -> None:
    await writer.add([label("a")])
    posts = ([label("b")], [label("c"), label("a", 0.0)], [label("d")])
    answers = await asyncio.gather(*(writer.add(post) for post in posts), return_exceptions=True)
    assert isinstance(answers[1], Conflict)
    assert stored(kept) == {"a", "b", "d"}


async def test_a_store_that_does_not_take_them_is_an_error_for_each(
    kept: Store, writer: LabelWriter, tmp_path: Path
) -> None:
    kept.close()
    (tmp_path / "store.db").unlink()
    answers = await asyncio.gather(*(writer.add([label(f"{n}")]) for n in range(3)), return_exceptions=True)
    assert all(isinstance(answer, StoreError) for answer in answers)


async def test_stopping_stores_what_waits(kept: Store) -> None:
    writer = LabelWriter(kept)
    waiting = [asyncio.ensure_future(writer.add([label(f"{n}")])) for n in range(20)]
    await asyncio.sleep(0)
    writer.start()
    writer.stop()
    assert await asyncio.gather(*waiting) == [["stored"]] * 20
    assert len(stored(kept)) == 20


def test_a_kill_loses_no_label_that_was_acknowledged(url: str) -> None:
    command = [sys.executable, "-m", "tests.proxy.labelling_until_killed", url]
    with closing(Store.open(url)) as kept:
        kept.traffic.add(Batch(exchanges=((exchange("ex-1"), Bodies()),)))
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:  # noqa: S603 - our own program
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(200)]
        process.kill()
        acknowledged += [line for line in process.stdout if line.endswith(b"\n")]
    with closing(Store.open(url)) as kept:
        assert {line.decode().strip() for line in acknowledged} <= stored(kept)
