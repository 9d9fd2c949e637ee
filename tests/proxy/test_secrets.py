"""No secret is shown anywhere: a proxy with a key of each kind is used and misused, and then all is searched."""

from __future__ import annotations

import html
import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from pydantic import BaseModel

from proxy.auth import Keys
from proxy.calls import Call
from proxy.routing import Router
from proxy.settings import load, shown
from tests.conftest import StartUpstream
from tests.proxy.collector import events, spans, takes
from tests.upstreams import PATIENCE, RawUpstream, chat

ROOT = Path(__file__).parents[2]
MARK = "CANARY"
FORM = "application/x-www-form-urlencoded"
KINDS = [
    *("client", "admin", "upstream", "dead", "paid", "feedback", "litellm", "policy", "optimizer", "wrong", "query"),
    *("collector", "password", "form", "header"),
]
KEYS = {kind: f"{MARK}-{kind}-key" for kind in KINDS}


def configuration(folder: Path, upstream: str, collector: str) -> dict[str, Any]:
    reached = {"name": "up", "base_url": upstream, "models": ["m", "missing"], "api_key": KEYS["upstream"]}
    dead = {"name": "dead", "base_url": "http://127.0.0.1:9/v1", "models": ["dead"], "api_key": KEYS["dead"]}
    app = {"name": "shop", "keys": [KEYS["client"]], "feedback_key": KEYS["feedback"], "upstream_key": KEYS["paid"]}
    entry = {"model_name": "other", "litellm_params": {"model": "openai/x", "api_key": KEYS["litellm"]}}
    models = {name: {"model": "m", "base_url": upstream, "api_key": KEYS[name]} for name in ("policy", "optimizer")}
    return {
        "server": {"port": 0, "admin_key": KEYS["admin"]},
        "store": {"url": f"sqlite:///{folder}/data/s.db"},
        "upstreams": [reached, dead],
        "apps": [{**app, "sets": ["math"]}],
        "model_list": [entry],
        "training": models,
        "telemetry": {
            "metrics": True,
            "access_log": True,
            "otlp": {"endpoint": collector, "headers": {"authorization": KEYS["collector"]}},
        },
    }


class Used:
    """A proxy in a process of its own; `shown` collects all that it answers."""

    def __init__(self, config: Path) -> None:
        self.shown: list[bytes] = []
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "proxy", "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.shown.append(line)
        self._port = int(line.split(b"127.0.0.1:")[1].split(b"/")[0])

    def ask(self, method: str, path: str, body: Any = None, *, key: str = "client") -> int:
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        sent = {"content-type": "application/json", "authorization": f"Bearer {KEYS[key]}"}
        line.request(method, path, None if body is None else json.dumps(body), sent)
        answered = line.getresponse()
        self.shown += [str(answered.getheaders()).encode(), answered.read()]
        line.close()
        return answered.status

    def log_in(self, key: str) -> str:
        """Log in to the dashboard; return the cookie, empty when it is refused."""
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        line.request("POST", "/admin/login", urlencode({"key": key}), {"content-type": FORM})
        answered = line.getresponse()
        self.shown += [str(answered.getheaders()).encode(), answered.read()]
        line.close()
        return (answered.getheader("set-cookie") or "").partition(";")[0]

    def look(self, path: str, cookie: str) -> tuple[int, str]:
        """Open a page of the dashboard."""
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        line.request("GET", path, headers={"cookie": cookie, "x-note": KEYS["header"]})
        answered = line.getresponse()
        body = answered.read()
        self.shown += [str(answered.getheaders()).encode(), body]
        line.close()
        return answered.status, body.decode()

    def end(self) -> None:
        self.process.terminate()
        self.shown += self.process.communicate(timeout=PATIENCE)


@pytest.fixture
def collector(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(takes)


@pytest.fixture
def config(tmp_path: Path, start_upstream: StartUpstream, collector: RawUpstream) -> Path:
    (tmp_path / "data").mkdir()
    written = tmp_path / "c.yaml"
    values = configuration(tmp_path, start_upstream(chat).base_url, collector.base_url.removesuffix("/v1"))
    written.write_text(json.dumps(values))
    return written


@pytest.fixture
def used(config: Path) -> Iterator[Used]:
    made = Used(config)
    yield made
    made.process.kill()
    made.process.communicate(timeout=PATIENCE)


def asked(model: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}]}


def test_a_used_and_misused_proxy_shows_no_key_in_answer_log_metric_or_store(used: Used, tmp_path: Path) -> None:
    chats = f"/v1/chat/completions?key={KEYS['query']}"
    statuses = [used.ask("POST", chats, asked(model)) for model in ("m", "missing", "dead")]
    statuses += [used.ask("POST", chats, asked("m"), key="wrong")]
    statuses += [used.ask("POST", "/v1/feedback", {"value": 2, "trajectory_id": "t"}, key="feedback")]
    statuses += [used.ask("PUT", "/admin/api/sets/math/deployment", {"live": "x"}, key="admin")]
    statuses += [used.ask("GET", path, key="admin") for path in ("/admin/api/exchanges", "/status", "/metrics")]
    statuses += [used.ask("GET", "/admin/openapi.json", key="admin")]
    statuses += [used.ask("GET", "/admin/api/sets", key="wrong"), used.ask("GET", f"/nowhere?k={KEYS['query']}")]
    used.end()
    assert statuses == [200, 404, 502, 401, 400, 400, 200, 200, 200, 200, 401, 404]
    assert [piece for piece in used.shown if MARK.encode() in piece] == []
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if MARK.encode() in path.read_bytes()] == []


def test_no_page_of_the_dashboard_shows_a_key(used: Used) -> None:
    used.ask("POST", "/set/math/v1/chat/completions", asked("m"))
    assert used.log_in(KEYS["form"]) == ""
    cookie = used.log_in(KEYS["admin"])
    pages, seen = ["/admin", "/admin/login", f"/admin/none?k={KEYS['query']}"], set()
    while pages:
        path = pages.pop()
        seen.add(path)
        status, body = used.look(path, cookie)
        assert status < 500, path
        found = {html.unescape(link) for link in re.findall(r'(?:href|src)="(/admin[^"#]*)"', body)}
        pages += sorted(found - seen - {*pages} - {"/admin/logout"})
    assert len(seen) > 5
    used.end()
    assert [piece for piece in used.shown if MARK.encode() in piece] == []


def test_spans_and_events_hold_no_key(used: Used, collector: RawUpstream) -> None:
    used.ask("POST", f"/v1/chat/completions?key={KEYS['query']}", asked("m"))
    used.ask("POST", "/v1/chat/completions", asked("dead"))
    used.ask("POST", "/session/s1/v1/chat/completions", asked("m"))
    judged = {"value": 1, "trajectory_id": "s1", "comment": KEYS["client"]}
    assert used.ask("POST", "/v1/feedback", judged, key="feedback") == 200
    used.end()
    assert spans(collector)
    assert events(collector)
    assert [seen for seen in collector.seen if MARK.encode() in seen.body] == []


def test_settings_show_no_key(config: Path) -> None:
    settings = load(config, environ={"TFGRPO_STORE__URL": f"postgresql+psycopg://u:{KEYS['password']}@127.0.0.1:9/d"})
    sections = list(nested(settings))
    assert len(sections) > 15
    assert [one for one in sections if MARK in f"{one!r} {one}"] == []
    assert MARK not in json.dumps(shown(settings))


def nested(value: Any) -> Iterator[BaseModel]:
    """A section and all that is below it."""
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from nested(getattr(value, name))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from nested(one)
    elif isinstance(value, Mapping):
        yield from nested(list(value.values()))


def test_what_the_live_path_hands_on_shows_no_key(config: Path) -> None:
    settings = load(config, environ={})
    router, keys = Router(settings), Keys(settings, KEYS["password"].encode())
    identity = keys.identify({b"authorization": f"Bearer {KEYS['client']}".encode()})
    address = router.locate("/v1/chat/completions")
    assert address is not None
    route = router.route(identity, address, {}, "m")
    call = Call("ex-1", identity, "POST", f"/v1?key={KEYS['query']}", route, body=KEYS["client"].encode())
    assert MARK not in f"{router.upstreams} {identity} {route} {keys} {vars(router)}"
    assert KEYS["client"] not in repr(call)


@pytest.mark.parametrize(
    "path", ["server.admin_key", "upstreams.0.api_key", "apps.0.keys.0", "training.policy.api_key"]
)
def test_a_key_of_the_wrong_form_is_refused_without_being_shown(config: Path, path: str) -> None:
    values: Any = json.loads(config.read_text())
    holder: Any = values
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        holder = holder[part]
    holder[last] = {"is": f"{MARK}-object"}
    config.write_text(json.dumps(values))
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "proxy", "--config", str(config), "--check-config"],
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert (ended.returncode, MARK.encode() in ended.stdout + ended.stderr) == (2, False)
