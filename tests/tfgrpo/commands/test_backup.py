from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import run, url
from tfgrpo import library
from tfgrpo.store import Store


async def test_a_backup_is_a_whole_store_made_while_another_writes(home: Path) -> None:
    with closing(Store.open(url(home), migrate=True)) as store:
        store.sets.add_version("math", library.from_texts(["Check units."]), status="by hand")
        code, out, _ = await run(home, "backup", "copy.db")
        assert (code, "copy.db" in out) == (0, True)
        store.sets.add_version("math", library.from_texts(["Check signs."]), status="by hand")
    with closing(Store.open(f"sqlite:///{home / 'copy.db'}")) as copy:
        assert [version.version for version in copy.sets.versions("math")] == [1]


async def test_a_backup_overwrites_nothing(home: Path) -> None:
    Store.open(url(home), migrate=True).close()
    (home / "copy.db").write_bytes(b"mine")
    code, _, err = await run(home, "backup", "copy.db")
    assert (code, "copy.db is there already" in err) == (2, True)
    assert (home / "copy.db").read_bytes() == b"mine"
