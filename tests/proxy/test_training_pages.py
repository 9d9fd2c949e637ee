"""Training from the dashboard: a real proxy, real processes of `tfgrpo`, the simulated provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.dashboard.training import RUNS
from tests.conftest import RunningProxy, StartProxy
from tests.proxy.browser import Browser, text
from tests.simulated import SECRET, simulated, tasks, training_proxy
from tfgrpo.store import Run, Store


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with simulated() as url:
        yield url


@pytest.fixture
def proxy(start_proxy: StartProxy, provider: str, tmp_path: Path) -> RunningProxy:
    return training_proxy(start_proxy, tmp_path, provider)


@pytest.fixture
def slow(start_proxy: StartProxy, provider: str, tmp_path: Path) -> RunningProxy:
    """A proxy whose runs ask one thing at a time."""
    return training_proxy(start_proxy, tmp_path, provider, concurrency=1)


def _run(proxy: RunningProxy, run_id: str) -> Run:
    store = Store.open(proxy.settings.store.url)
    try:
        return store.runs.run(run_id)
    finally:
        store.close()


def _events(person: Browser, run: str) -> str:
    """What a page is told until its run ends."""
    told = ""
    while "event: end" not in told:
        told += person.get(f"{run}/events").body.decode()
    return told


def test_a_run_is_estimated_started_watched_to_its_end_and_read(proxy: RunningProxy) -> None:
    person = Browser(proxy)
    asked = person.send(f"{RUNS}/estimate", set="office", **{"from": "dataset"}, lines=tasks())
    assert asked.status == 200
    assert re.search(r"<dt>Money</dt><dd>\$[\d.]+ to \$[\d.]+</dd>", text(asked))
    began = person.confirm(asked, RUNS)
    assert began.status == 303
    run = began.headers["location"]
    events = _events(person, run)
    assert '<progress max="' in events
    shown = text(person.get(run))
    assert "The run made office@1, from nothing." in shown
    assert f'href="{run}/report"' in shown
    report = person.get(f"{run}/report")
    assert (report.status, "The gate" in text(report)) == (200, True)
    assert "'unsafe-inline'" not in report.headers["content-security-policy"]
    listed = text(person.get(RUNS))
    assert '<a href="/admin/sets/office/versions/1">1</a>' in listed
    again = text(person.get(f"{RUNS}/new?again={run.rsplit('/', 1)[1]}"))
    assert '<input type="hidden" name="data"' in again
    everything = shown + events + listed + again + text(asked) + report.body.decode()
    assert SECRET not in everything
    assert SECRET not in json.dumps(dict(_run(proxy, run.rsplit("/", 1)[1]).arguments))


def test_a_run_that_is_asked_to_stop_says_that_it_stopped_and_what_to_do(slow: RunningProxy) -> None:
    person = Browser(slow)
    asked = person.send(f"{RUNS}/estimate", set="office", **{"from": "dataset"}, lines=tasks(150))
    run = person.confirm(asked, RUNS).headers["location"]
    assert "It makes no version." in text(person.send(f"{run}/stop"))
    assert person.send(f"{run}/stop", confirmed="yes").status == 303
    _events(person, run)
    shown = text(person.get(run))
    assert "The run stopped: interrupted" in shown
    assert "Go on from there…" in shown


def test_a_run_ends_with_the_proxy(slow: RunningProxy) -> None:
    person = Browser(slow)
    asked = person.send(f"{RUNS}/estimate", set="office", **{"from": "dataset"}, lines=tasks(150))
    run = person.confirm(asked, RUNS).headers["location"]
    slow.stop()
    assert _run(slow, run.rsplit("/", 1)[1]).status == "stopped"


def test_what_keeps_a_run_from_starting_stands_in_its_form(start_proxy: StartProxy, tmp_path: Path) -> None:
    person = Browser(training_proxy(start_proxy, tmp_path, None))
    answer = person.send(f"{RUNS}/estimate", set="office", **{"from": "dataset"}, lines='{"question": "<b>?"}')
    assert answer.status == 400
    assert 'role="alert">no model is configured: set training.optimizer.model' in text(answer)
    assert "&lt;b&gt;?" in text(answer)


def test_a_line_of_a_data_set_that_is_none_is_named(proxy: RunningProxy) -> None:
    lines = '{"question": "a", "answer": "b"}\nnonsense'
    answer = Browser(proxy).send(f"{RUNS}/estimate", set="office", **{"from": "dataset"}, lines=lines)
    assert answer.status == 400
    assert re.search(r'role="alert">[^<]*\bline 2\b|role="alert">[^<]*:2\b', text(answer))
    assert str(proxy.settings.store.url.rpartition("/")[0].removeprefix("sqlite:///")) not in text(answer)


WRONG: list[tuple[dict[str, str], str]] = [
    ({"set": "A b"}, "set"),
    ({"set": ""}, "set"),
    ({"set": "s", "from": "thin air"}, "from"),
    ({"set": "s", "from": "dataset"}, "lines"),
    ({"set": "s", "from": "dataset", "data": "../../etc/passwd"}, "data"),
    ({"set": "s", "from": "dataset", "data": "0" * 16}, "data"),
    ({"set": "s", "from": "dataset", "lines": "x" * ((4 << 20) + 1)}, "lines"),
    ({"set": "s", "from": "replay", "grader": "python:os:system"}, "grader"),
    ({"set": "s", "max_usd": "nan"}, "max_usd"),
    ({"set": "s", "max_usd": "-1"}, "max_usd"),
    ({"set": "s", "max_tokens": "9" * 5000}, "max_tokens"),
    ({"set": "s", "max_tokens": "1.5"}, "max_tokens"),
]


def test_a_field_that_does_not_fit_is_named(start_proxy: StartProxy) -> None:
    person = Browser(start_proxy())
    token = person.token()
    for fields, named in WRONG:
        answer = person.post(f"{RUNS}/estimate", {"token": token, **fields})
        assert (answer.status, f'role="alert">{named} ' in text(answer)) == (400, True), fields


def test_a_run_that_is_not_there_is_a_page_that_says_so(start_proxy: StartProxy) -> None:
    person = Browser(start_proxy())
    for path in ("none", "none/events", "none/report", "new?again=none"):
        assert person.get(f"{RUNS}/{path}").status == 404, path
