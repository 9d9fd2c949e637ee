"""A real browser at a real proxy: Debian's chromium, driven by Playwright, and what a page must never have.

Where no chromium is to be had the tests are skipped, and say so: `apt-get install chromium`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Error, Page, expect, sync_playwright

from tests.conftest import RunningProxy

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDE = (1280, 900)
NARROW = (360, 740)
_AXE = (Path(__file__).parent / "axe" / "axe-4.14.1.min.js").read_text()
_PATIENCE = 60_000

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a file: while it runs, no other event loop may run in this thread."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine, so no page was tried in a browser: apt-get install chromium")
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Open pages: `open_page(proxy, "/admin/sets", key="root", size=NARROW, dark=True, script=False)`.

    At the end no page may have raised an error, logged one, or been refused anything by its policy.
    """
    wrong: list[str] = []
    contexts = []

    def told(dialog: Dialog) -> None:
        wrong.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def listen(page: Page) -> None:
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("dialog", told)

    def open_(proxy: RunningProxy, path: str, **options: Any) -> Page:
        width, height = options.get("size", WIDE)
        context = chromium.new_context(
            base_url=f"http://127.0.0.1:{proxy.port}",
            viewport={"width": width, "height": height},
            color_scheme="dark" if options.get("dark") else "light",
            java_script_enabled=options.get("script", True),
            reduced_motion="reduce",
        )
        context.set_default_timeout(_PATIENCE)
        contexts.append(context)
        page = context.new_page()
        listen(page)
        if "key" in options:
            page.goto("/admin/login")
            page.get_by_label("Admin key").fill(options["key"])
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url(lambda url: "login" not in url)
        page.goto(path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not wrong


def faults(page: Page) -> list[str]:
    """Return what axe finds serious or critical, and what is wider than the window.

    A page that goes on by itself meanwhile, as that of a run does at its end, is looked at where it came to.
    """
    try:
        return _faults(page)
    except Error as error:
        if "context was destroyed" not in error.message:
            raise
    page.wait_for_load_state()
    return _faults(page)


def _faults(page: Page) -> list[str]:
    found = page.evaluate(f"{_AXE};\naxe.run(document, {{resultTypes: ['violations']}})")
    said = [
        f"{one['id']} ({one['impact']}): {node['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
    if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
        said.append("the page is wider than its window")
    return said
