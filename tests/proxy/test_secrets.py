"""No secret is shown anywhere: a proxy with a key of each kind is used and misused, and then all is searched."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.settings import load
from tests.conftest import StartUpstream
from tests.upstreams import PATIENCE, chat

ROOT = Path(__file__).parents[2]
MARK = "CANARY"
KINDS = ("client", "admin", "upstream", "dead", "paid", "feedback", "litellm", "policy", "optimizer", "wrong", "query")
KEYS = {kind: f"{MARK}-{kind}-key" for kind in KINDS}


def configuration(folder: Path, upstream: str) -> dict[str, Any]:
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
        "telemetry": {"metrics": True, "access_log": True},
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

    def end(self) -> None:
        self.process.terminate()
        self.shown += self.process.communicate(timeout=PATIENCE)


@pytest.fixture
def config(tmp_path: Path, start_upstream: StartUpstream) -> Path:
    (tmp_path / "data").mkdir()
    written = tmp_path / "c.yaml"
    written.write_text(json.dumps(configuration(tmp_path, start_upstream(chat).base_url)))
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
    statuses += [used.ask("GET", "/admin/api/sets", key="wrong"), used.ask("GET", f"/nowhere?k={KEYS['query']}")]
    used.end()
    assert statuses == [200, 404, 502, 401, 400, 400, 200, 200, 200, 401, 404]
    assert [piece for piece in used.shown if MARK.encode() in piece] == []
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if MARK.encode() in path.read_bytes()] == []


def test_settings_show_no_key(config: Path) -> None:
    settings = load(config, environ={})
    shown = f"{settings!r} {settings} {settings.model_dump(mode='json')}"
    assert MARK not in shown


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
