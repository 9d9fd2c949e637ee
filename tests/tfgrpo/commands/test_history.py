from __future__ import annotations

from pathlib import Path

from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import run, url
from tfgrpo import library
from tfgrpo.store import Store


async def test_a_head_that_nobody_would_look_for_is_wrong_usage(home: Path) -> None:
    store = Store.open(url(home), migrate=True)
    store.sets.add_version("math", library.from_texts(["Check the sign."]), status="by hand")
    store.close()
    code, _, err = await run(home, "sets", "history", "math", "--head", "abc:def")
    assert (code, "--verify" in err) == (2, True)
