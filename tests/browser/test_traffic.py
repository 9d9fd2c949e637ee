"""Traffic read and labelled by a person with a browser, a keyboard or a screen reader."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from proxy.dashboard.traffic import ONE, ROOT
from tests.browser.conftest import NARROW, WIDE, OpenPage, faults
from tests.conftest import RunningProxy, StartProxy
from tests.proxy.traffic_rows import HOSTILE, asked, record, said
from tfgrpo.store import Store

SHOTS = os.environ.get("SCREENSHOTS")
ARGUMENTS = '{"order": 12, "with": ["address"]}'
CALL = {"id": "call_7", "type": "function", "function": {"name": "find_order", "arguments": ARGUMENTS}}


@pytest.fixture
def proxy(start_proxy: StartProxy) -> RunningProxy:
    made = start_proxy()
    made.deploy("support", "Ask for the order number first.", "Say when a refund arrives.")
    calls = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [CALL]}}]}).encode()
    system = {"role": "system", "content": "You help customers of a shop."}
    talk: list[dict[str, Any]] = [system, {"role": "user", "content": "Where is my parcel?\nI wait since Monday."}]
    first = json.dumps({"model": "gpt-4o-mini", "messages": talk}).encode()
    talk += [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call_7", "content": "late"}]
    second = json.dumps({"model": "gpt-4o-mini", "messages": talk}).encode()
    record(
        made, (first, calls), (second, said("It is late; you get it tomorrow.")), trajectory="parcel", started_at=3e3,
        set="support", version=1, arm="live", prompt_tokens=420, completion_tokens=64,
    )  # fmt: skip
    record(made, (asked(HOSTILE + "long " * 9_000), said("No.")), trajectory="hostile", started_at=2e3)
    record(made, (asked("gone"), b""), trajectory="failed", record="metadata", outcome="failed", status=502)
    return made


def rewards(proxy: RunningProxy, name: str) -> list[float]:
    with closing(Store.open(proxy.settings.store.url)) as store:
        return [one.value for one in store.labels.of_trajectory("default", name)]


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"traffic-{name}.png"), full_page=True)


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_the_pages_of_traffic_are_free_of_serious_faults(proxy: RunningProxy, open_page: OpenPage, look: str) -> None:
    page = open_page(proxy, ROOT, size=NARROW if look == "narrow" else WIDE, dark=look == "dark")
    paths = {
        "list": ROOT,
        "exchanges": f"{ROOT}?view=exchanges",
        "nothing": f"{ROOT}?model=none",
        "one": f"{ONE}?app=default&id=parcel",
        "hostile": f"{ONE}?app=default&id=hostile",
        "failed": f"{ONE}?app=default&id=failed",
        "sent": f"{ROOT}/sent?id=ex-parcel-1",
    }
    for name, path in paths.items():
        page.goto(path)
        assert faults(page) == [], path
        shot(page, f"{name}-{look}")


def test_a_person_labels_one_after_the_other_by_one_key_each(proxy: RunningProxy, open_page: OpenPage) -> None:
    page = open_page(proxy, ROOT)
    page.get_by_role("link", name="Where is my parcel?").click()
    page.wait_for_load_state()
    page.keyboard.press("+")
    expect(page.get_by_role("status")).to_have_text("Stored: reward 1.")
    page.keyboard.press("7")
    expect(page.get_by_role("status")).to_have_text("Stored: reward 0.7.")
    assert faults(page) == []
    shot(page, "labelled")
    page.keyboard.press("n")
    page.wait_for_url(re.compile("id=hostile"))
    page.keyboard.press("-")
    expect(page.get_by_role("status")).to_have_text("Stored: reward 0.")
    assert (rewards(proxy, "parcel"), rewards(proxy, "hostile")) == ([1.0, 0.7], [0.0])


def test_a_key_pressed_as_soon_as_the_answer_stands_labels_without_a_new_page(
    proxy: RunningProxy, open_page: OpenPage
) -> None:
    page = open_page(proxy, f"{ONE}?app=default&id=parcel")
    page.evaluate(
        """() => new MutationObserver((_, watching) => {
            watching.disconnect();
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "7", bubbles: true }));
        }).observe(document.getElementById("labels").parentNode, { childList: true })"""
    )
    page.keyboard.press("+")
    expect(page.get_by_role("status")).to_have_text("Stored: reward 0.7.")
    assert rewards(proxy, "parcel") == [1.0, 0.7]


def test_no_key_labels_where_a_person_writes_or_has_switched_the_keys_off(
    proxy: RunningProxy, open_page: OpenPage
) -> None:
    page = open_page(proxy, f"{ONE}?app=default&id=parcel")
    page.get_by_label("Comment").fill("5 + 3 is")
    page.keyboard.press("+")
    expect(page.get_by_label("Comment")).to_have_value("5 + 3 is+")
    page.get_by_role("checkbox").uncheck()
    page.keyboard.press("+")
    page.reload()
    expect(page.get_by_role("checkbox")).not_to_be_checked()
    page.keyboard.press("+")
    page.get_by_role("button", name="Bad").click()
    expect(page.get_by_role("status")).to_have_text("Stored: reward 0.")
    assert rewards(proxy, "parcel") == [0.0]


def test_a_label_is_given_without_any_script(proxy: RunningProxy, open_page: OpenPage) -> None:
    page = open_page(proxy, f"{ONE}?app=default&id=parcel", script=False)
    page.get_by_role("button", name="Good").click()
    page.wait_for_load_state()
    assert rewards(proxy, "parcel") == [1.0]
    expect(page.get_by_role("checkbox")).to_be_hidden()
