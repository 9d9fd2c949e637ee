"""Each page of the dashboard as it looks to a person, in light, dark and narrow: nothing serious found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser.conftest import NARROW, WIDE, OpenPage, faults
from tests.conftest import RunningProxy, StartProxy

SHOTS = os.environ.get("SCREENSHOTS")
"""A folder: where set, each page that is tried is also kept there as a picture."""

PAGES = [
    "/admin",
    "/admin/candidates",
    "/admin/sets",
    "/admin/sets/math",
    "/admin/sets/math/versions/2",
    "/admin/sets/math/diff?after=2",
]


@pytest.fixture
def proxy(start_proxy: StartProxy) -> RunningProxy:
    made = start_proxy(server={"admin_key": "root"})
    key = {"authorization": "Bearer root"}
    for texts in (["Show each step."], ["Show every step.", "Check the units."]):
        body = {"experiences": [{"text": text, "id": f"e{place}"} for place, text in enumerate(texts, 1)]}
        assert made.request("POST", "/admin/api/sets/math/versions", body, key).status == 201
    return made


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_every_page_is_free_of_serious_faults(proxy: RunningProxy, open_page: OpenPage, look: str) -> None:
    page = open_page(proxy, PAGES[0], key="root", size=NARROW if look == "narrow" else WIDE, dark=look == "dark")
    for place, path in enumerate(PAGES):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        assert faults(page) == [], path
        if SHOTS:
            page.screenshot(path=str(Path(SHOTS) / f"{place:02}-{look}.png"), full_page=True)


def test_the_page_that_asks_for_the_key_is_free_of_serious_faults(proxy: RunningProxy, open_page: OpenPage) -> None:
    assert faults(open_page(proxy, "/admin/login")) == []


def test_a_page_works_by_keyboard_from_the_skip_link_on(proxy: RunningProxy, open_page: OpenPage) -> None:
    page = open_page(proxy, "/admin/sets", key="root")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_charts_are_drawn_from_the_tables_that_stand_below_them(proxy: RunningProxy, open_page: OpenPage) -> None:
    page = open_page(proxy, "/admin?span=day", key="root")
    assert page.locator(".plot canvas").count() == 3
    page.get_by_text("Requests and errors: the numbers").click()
    assert page.locator("#traffic-numbers tr").count() == 1 + 24


def test_the_span_of_the_overview_is_chosen_by_one_key(proxy: RunningProxy, open_page: OpenPage) -> None:
    page = open_page(proxy, "/admin", key="root")
    page.get_by_label("7 days").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/admin?span=month")


def test_without_scripts_the_numbers_stand_there_as_tables(proxy: RunningProxy, open_page: OpenPage) -> None:
    page = open_page(proxy, "/admin", key="root", script=False)
    page.get_by_text("Latency added, milliseconds: the numbers").click()
    assert page.get_by_role("columnheader", name="Half below").is_visible()
