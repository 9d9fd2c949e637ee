from __future__ import annotations

import asyncio
import pickle
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tfgrpo.memo import Memo, NotTextError, TextDisk


@pytest.fixture
def memo(tmp_path: Path) -> Iterator[Memo]:
    made = Memo(tmp_path / "memo")
    yield made
    made.close()


async def test_the_memo_never_unpickles(memo: Memo, tmp_path: Path) -> None:
    await memo.put("key", "text")
    bomb = pickle.dumps(Bomb(tmp_path / "exploded"))
    with sqlite3.connect(memo.directory / "cache.db") as database:
        database.execute("UPDATE Cache SET mode = 4, value = ?", (bomb,))
    database.close()
    assert (await memo.get("key"), (tmp_path / "exploded").exists()) == (None, False)


class Bomb:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


async def test_nothing_is_ever_evicted(memo: Memo) -> None:
    await memo.put("key", "text")
    with sqlite3.connect(memo.directory / "cache.db") as database:
        settings = dict(database.execute("SELECT key, value FROM Settings"))
    database.close()
    assert (settings["eviction_policy"], memo.directory.stat().st_mode & 0o77) == ("none", 0)


async def test_a_long_text_is_a_row_and_no_file(memo: Memo) -> None:
    text = "\N{SNOWMAN}" * 200_000
    await memo.put("key", text)
    with sqlite3.connect(memo.directory / "cache.db") as database:
        ((kind, filename),) = database.execute("SELECT typeof(value), filename FROM Cache")
    database.close()
    assert (await memo.get("key") == text, kind, filename) == (True, "text", None)


@pytest.mark.parametrize("value", [b"bytes", 1, None, ["list"]])
def test_what_is_not_text_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(NotTextError):
        TextDisk(str(tmp_path)).store(value, read=False)
    with pytest.raises(NotTextError):
        TextDisk(str(tmp_path)).put(value)


async def test_the_event_loop_goes_on_while_another_process_holds_the_lock(memo: Memo) -> None:
    database = sqlite3.connect(memo.directory / "cache.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    put = asyncio.create_task(memo.put("key", "text"))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not put.done()
    database.execute("COMMIT")
    database.close()
    await put
    assert await memo.get("key") == "text"
