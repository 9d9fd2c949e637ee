"""How much of traffic is recorded: by configuration, by header, by share. On a running proxy and both stores."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from proxy.errors import ProxyError
from proxy.record_modes import RecordMode, lowered
from proxy.settings import load
from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.upstreams import RawUpstream, chat
from tfgrpo import experiment
from tfgrpo.store import Store
from tfgrpo.types import Exchange

SECRET = "the word is aubergine"
Start = Callable[..., RunningProxy]


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(chat)


@pytest.fixture
def start(start_proxy: StartProxy, upstream: RawUpstream, url: str) -> Start:
    """Start a proxy whose requests get the set `s`; sections as in config.yaml."""

    def made(**sections: Any) -> RunningProxy:
        return start_proxy(
            upstream.base_url, store={"url": url}, **({"routes": [{"set": "s", "models": ["*"]}]} | sections)
        )

    return made


def kept(url: str) -> tuple[list[Exchange], int, int]:
    """The exchanges of a store, how many of them have bodies, and how many trajectories are known."""
    store = Store.open(url)
    found = store.traffic.page(limit=100)
    bodies = store.traffic.bodies([one.id for one in found])
    known = [one for one in found if store.traffic.assignment(one.app, one.trajectory) is not None]
    store.close()
    return found, len(bodies), len(known)


@pytest.mark.parametrize(
    ("allowed", "asked", "found"),
    [
        ("full", None, "full"),
        ("full", b"metadata", "metadata"),
        ("full", b" off ", "off"),
        ("metadata", b"full", "metadata"),
        ("off", b"full", "off"),
        ("metadata", b"off", "off"),
        ("full", b"off,full", "off"),
        ("full", b"full, metadata", "metadata"),
    ],
)
def test_a_request_may_lower_what_is_recorded_and_never_raise_it(
    allowed: RecordMode, asked: bytes | None, found: str
) -> None:
    assert lowered(allowed, asked) == found


@pytest.mark.parametrize("asked", [b"", b"Full", b"none", b"\xff", b"off,", b"off, all"])
def test_what_is_no_mode_is_refused(asked: bytes) -> None:
    with pytest.raises(ProxyError, match="x-tfgrpo-record takes off, metadata or full"):
        lowered("full", asked)


def test_metadata_keeps_links_tokens_and_labels_and_no_word(start: Start, url: str, tmp_path: Path) -> None:
    proxy = start(recorder={"record": "metadata"})
    proxy.deploy("s", "Check units.")
    first = proxy.chat(SECRET)
    assert first.headers["x-tfgrpo-set"] == "s@1"
    said = first.json["choices"][0]["message"]
    turns = [{"role": "user", "content": SECRET}, said, {"role": "user", "content": "And back?"}]
    second = proxy.chat(messages=turns)
    assert second.headers["x-tfgrpo-trajectory"] == first.headers["x-tfgrpo-trajectory"]
    label = {"exchange_id": first.headers["x-tfgrpo-exchange"], "value": True}
    sent = {"content-type": "application/json", "authorization": "Bearer sk-client"}
    assert proxy.request("POST", "/v1/feedback", label, sent).json["status"] == "stored"
    proxy.stop()
    found, bodies, known = kept(url)
    assert [(one.record, one.outcome, one.arm) for one in found] == [("metadata", "complete", "live")] * 2
    assert (bodies, known) == (0, 2)
    assert all(one.prompt_tokens is not None for one in found)
    assert not [one for one in tmp_path.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]


def test_off_stores_nothing_and_still_injects(start: Start, url: str) -> None:
    proxy = start()
    proxy.deploy("s", "Check units.")
    answered = proxy.chat(SECRET, headers={"x-tfgrpo-record": "off", "x-tfgrpo-trajectory": "mine"})
    assert (answered.status, answered.headers["x-tfgrpo-set"]) == (200, "s@1")
    assert answered.headers["x-tfgrpo-exchange"]
    assert "x-tfgrpo-trajectory" not in answered.headers
    proxy.stop()
    assert kept(url)[0] == []
    store = Store.open(url)
    assert store.traffic.assignment("default", "mine") is None
    store.close()


@pytest.mark.parametrize("values", [("off", "full"), ("full", "off")])
def test_of_a_header_given_twice_the_least_counts(start: Start, url: str, values: tuple[str, str]) -> None:
    proxy = start()
    connection = http.client.HTTPConnection(urlsplit(proxy.base_url).netloc, timeout=10)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": SECRET}]})
    connection.putrequest("POST", "/v1/chat/completions")
    for name, value in [("content-type", "application/json"), ("content-length", str(len(body)))]:
        connection.putheader(name, value)
    for value in values:
        connection.putheader("x-tfgrpo-record", value)
    connection.endheaders(body.encode())
    assert connection.getresponse().status == 200
    connection.close()
    proxy.stop()
    assert kept(url)[0] == []


def test_the_header_does_not_reach_the_upstream(start: Start, upstream: RawUpstream) -> None:
    start().chat(headers={"x-tfgrpo-record": "metadata"})
    assert not [name for name, _ in upstream.wait_seen().raw_headers if name.lower() == b"x-tfgrpo-record"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/embeddings"])
def test_a_bad_value_is_refused_in_the_callers_envelope(start: Start, path: str) -> None:
    body = {"model": "m", "messages": []}
    answered = start().request("POST", path, body, {"content-type": "application/json", "x-tfgrpo-record": "all"})
    assert answered.status == 400
    assert "x-tfgrpo-record takes off, metadata or full" in answered.json["error"]["message"]
    assert (answered.json.get("type") == "error") is (path == "/v1/messages")


def test_an_app_has_its_own_mode(start: Start, url: str) -> None:
    apps = [
        {"name": "quiet", "keys": ["sk-quiet"], "record": "metadata", "sets": ["s"]},
        {"name": "gone", "keys": ["sk-gone"], "record": "off", "sets": ["s"]},
        {"name": "open", "keys": ["sk-open"], "sets": ["s"]},
    ]
    proxy = start(apps=apps, routes=[])
    for key in ("sk-quiet", "sk-gone", "sk-open"):
        asked = {"authorization": f"Bearer {key}", "x-tfgrpo-record": "full"}
        assert proxy.chat(headers=asked).status == 200
    proxy.stop()
    found, bodies, _ = kept(url)
    assert {one.app: one.record for one in found} == {"quiet": "metadata", "open": "full"}
    assert bodies == 1


def test_yaml_may_say_off_without_quotes(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("recorder: {record: off}\napps: [{name: a, keys: [sk-a], record: off}]\n")
    settings = load(config, environ={})
    assert (settings.recorder.record, settings.apps[0].record) == ("off", "off")


def test_bodies_are_kept_of_whole_trajectories_by_the_share_and_the_share_stands_with_them(
    start: Start, url: str
) -> None:
    proxy = start(recorder={"record_share": 0.5})
    for number in range(24):
        for _ in range(2):
            proxy.chat(headers={"x-tfgrpo-trajectory": f"t-{number}"})
    proxy.stop()
    found, bodies, known = kept(url)
    modes: dict[str, set[str]] = {}
    for one in found:
        modes.setdefault(one.trajectory, set()).add(one.record)
    assert all(len(seen) == 1 for seen in modes.values())
    whole = [name for name, seen in modes.items() if seen == {"full"}]
    assert 0 < len(whole) < 24
    assert (len(found), bodies, known) == (48, 2 * len(whole), 48)
    assert {one.record_share for one in found} == {0.5}


def test_a_pinned_request_is_not_sampled(start: Start, url: str) -> None:
    proxy = start(recorder={"record_share": 0.0})
    proxy.deploy("s", "Check units.")
    proxy.chat("one", headers={"x-tfgrpo-set": "s@1"})
    proxy.chat("two")
    proxy.stop()
    found, bodies, _ = kept(url)
    assert sorted((one.arm, one.record, one.record_share) for one in found) == [
        ("live", "metadata", 0.0),
        ("pinned", "full", 1.0),
    ]
    assert bodies == 1


def test_the_sample_is_as_large_as_its_share_and_grows_with_it() -> None:
    names = [f"t-{number}" for number in range(4000)]
    tenth = {name for name in names if experiment.sampled(b"k" * 32, "a", name, 0.1)}
    half = {name for name in names if experiment.sampled(b"k" * 32, "a", name, 0.5)}
    assert len(tenth) / 4000 == pytest.approx(0.1, abs=0.02)
    assert len(half) / 4000 == pytest.approx(0.5, abs=0.03)
    assert tenth < half
