from __future__ import annotations

from pathlib import Path

import pytest

from tests.tfgrpo.report.example import RESULT
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import run, url
from tfgrpo.store import Store


@pytest.mark.parametrize(("output", "start"), [("r.html", "<!doctype html>"), ("r.md", "# What")])
async def test_the_report_of_a_run_is_written_as_the_file_is_named(home: Path, output: str, start: str) -> None:
    store = Store.open(url(home))
    store.runs.start("r1", set_name="s", arguments={}, started_at=0.0)
    store.runs.finish("r1", status="finished", result=RESULT)
    store.close()
    code, _, err = await run(home, "runs", "report", "r1", "--output", output)
    assert (code, output in err, (home / output).read_text().startswith(start)) == (0, True, True)


async def test_a_report_that_cannot_be_written_is_one_line(home: Path) -> None:
    store = Store.open(url(home))
    store.runs.start("r1", set_name="s", arguments={}, started_at=0.0)
    store.close()
    code, out, err = await run(home, "runs", "report", "r1", "--output", "absent/r.html")
    assert (code, out, err.count("\n")) == (2, "", 1)
