"""The way that the README shows, by a person with a browser: from a data set to a version that is live."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, OpenPage, faults
from tests.conftest import StartProxy
from tests.simulated import simulated, training_proxy
from tfgrpo.simulation.world import World

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "docs" / "office.jsonl"


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with simulated() as url:
        yield url


def press(page: Page, name: str) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name)).click()


def test_a_person_goes_from_a_data_set_to_a_live_version(
    start_proxy: StartProxy, provider: str, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(training_proxy(start_proxy, tmp_path, provider), "/admin/training", size=NARROW)
    assert faults(page) == []
    press(page, "Start a run…")
    page.get_by_label("Experience set").fill("office")
    page.get_by_label("or a file").set_input_files(TASKS)
    expect(page.get_by_label("a data set", exact=True)).to_be_checked()
    assert faults(page) == []
    press(page, "Estimate…")
    assert faults(page) == []
    press(page, "Start the run")
    assert faults(page) == []
    expect(page.get_by_role("heading", name="What version 1 says")).to_be_visible()
    assert faults(page) == []
    run = page.url
    page.goto("/admin/groups")
    assert faults(page) == []
    page.get_by_role("row").nth(1).get_by_role("link").click()
    expect(page.get_by_role("heading", name="From the worst to the best")).to_be_visible()
    assert faults(page) == []
    page.goto(run)
    press(page, "Deploy version 1…")
    expect(page.get_by_label("Live version")).to_have_value("1")
    press(page, "Deploy…")
    press(page, "Deploy")
    expect(page.locator("main")).to_contain_text("Revision 1")
    page.goto(run)
    expect(page.locator("main")).to_contain_text("Version 1 is live now.")
    expect(page.get_by_role("link", name="Deploy version 1…")).to_have_count(0)


def test_the_tasks_that_the_readme_names_are_those_of_the_simulated_provider() -> None:
    kept = [json.loads(line) for line in TASKS.read_text().splitlines()]
    drawn = World.draw(0).tasks(len(kept), split="train")
    assert kept == [{"question": one["question"], "answer": one["answer"]} for one in drawn]
