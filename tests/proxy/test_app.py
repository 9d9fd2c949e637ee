from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.raw_client import posted, read_until
from tests.upstreams import PATIENCE, RawUpstream, chat, chunk, chunked_head

QUESTION: Any = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
TOOLS: Any = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
CALLS: list[dict[str, Any]] = [
    {},
    {"n": 2},
    {"tools": TOOLS},
    {"stream": True},
    {"stream": True, "n": 2},
    {"extra_body": {"unknown": [1e-7, None]}},
]


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(chat)


def sdk(base_url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=base_url, api_key="sk-client", max_retries=0)


def said(base_url: str, asked: dict[str, Any]) -> Any:
    """What an application sees of an answer, without its id."""
    with sdk(base_url) as client:
        got = client.chat.completions.create(model="m", messages=QUESTION, **asked)
        seen = [one.model_dump() for one in got] if asked.get("stream") else [got.model_dump()]
    return [{**one, "id": ""} for one in seen]


@pytest.mark.parametrize("asked", CALLS, ids=lambda asked: ",".join(asked) or "plain")
def test_the_openai_sdk_sees_the_same_with_and_without_the_proxy(
    start_proxy: StartProxy, upstream: RawUpstream, asked: dict[str, Any]
) -> None:
    proxy = start_proxy(upstream.base_url)
    assert said(proxy.base_url, asked) == said(upstream.base_url, asked)


@pytest.mark.parametrize("asked", CALLS, ids=lambda asked: ",".join(asked) or "plain")
def test_the_upstream_sees_the_same_with_and_without_the_proxy(
    start_proxy: StartProxy, upstream: RawUpstream, asked: dict[str, Any]
) -> None:
    proxy = start_proxy(upstream.base_url)
    said(proxy.base_url, asked)
    said(upstream.base_url, asked)
    through, direct = upstream.seen
    assert through.body == direct.body
    # The length of a body is framing and the host is the connection's; both clients keep the connection open.
    framing = (b"host", b"content-length", b"connection")
    kept = [[pair for pair in one.raw_headers if pair[0] not in framing] for one in (through, direct)]
    assert kept[0] == kept[1]


def test_the_openai_sdk_raises_the_same_error(start_proxy: StartProxy, upstream: RawUpstream) -> None:
    seen = []
    for base_url in (start_proxy(upstream.base_url).base_url, upstream.base_url):
        with sdk(base_url) as client, pytest.raises(openai.NotFoundError) as caught:
            client.chat.completions.create(model="missing", messages=QUESTION)
        seen.append((str(caught.value), caught.value.request_id))
    assert seen[0] == seen[1]


def test_a_label_sent_under_any_prefix_is_stored(start_proxy: StartProxy, upstream: RawUpstream) -> None:
    proxy = start_proxy(upstream.base_url)
    exchange_id = proxy.chat().headers["x-tfgrpo-exchange"]
    sent = {"authorization": "Bearer sk-client"}
    for prefix in ("", "/set/math", "/session/s1", "/up"):
        posted = proxy.request("POST", f"{prefix}/v1/feedback", {"exchange_id": exchange_id, "value": True}, sent)
        assert (posted.status, posted.json["status"]) == (200, "stored")


@pytest.mark.parametrize("path", ["/health/liveliness", "/health/liveness", "/health/readiness", "/status"])
def test_a_probe_is_answered(start_proxy: StartProxy, path: str) -> None:
    answered = start_proxy().request("GET", path)
    assert (answered.status, answered.json["status"]) == (200, "alive" if "live" in path else "ready")


@pytest.mark.parametrize("path", ["/", "/chat/completions", "/v2/models", "/nowhere/v1/models"])
def test_a_wrong_path_is_a_404_with_a_hint(start_proxy: StartProxy, path: str) -> None:
    answered = start_proxy().request("GET", path)
    assert answered.status == 404
    assert "/v1" in answered.json["error"]["message"]


def test_the_control_plane_answers_a_foreign_page_with_401(start_proxy: StartProxy) -> None:
    assert start_proxy().request("GET", "/admin/api/sets", None, {"origin": "http://evil.example"}).status == 401


def test_an_app_key_is_needed_where_apps_are_configured(start_proxy: StartProxy, upstream: RawUpstream) -> None:
    proxy = start_proxy(upstream.base_url, apps=[{"name": "shop", "keys": ["sk-shop"]}])
    statuses = [proxy.chat(headers={"authorization": f"Bearer {key}"}).status for key in ("sk-other", "sk-shop")]
    assert statuses == [401, 200]
    assert "authorization" not in upstream.seen[0].headers


def test_no_key_is_left_in_the_store(start_proxy: StartProxy, upstream: RawUpstream, tmp_path: Path) -> None:
    proxy = start_proxy(upstream.base_url, server={"admin_key": "CANARY-admin"})
    proxy.chat(headers={"authorization": "Bearer CANARY-client"})
    proxy.stop()
    assert not [path for path in tmp_path.iterdir() if b"CANARY" in path.read_bytes()]


class Program:
    """`tfgrpo-proxy` in a process of its own, with a configuration file."""

    def __init__(self, folder: Path, config: str, *arguments: str) -> None:
        (folder / "c.yaml").write_text(config)
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "proxy", "--config", str(folder / "c.yaml"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TFGRPO_STORE__URL": f"sqlite:///{folder / 'program.db'}"},
            cwd=Path(__file__).parent.parent.parent,
        )

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, err


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        program.process.kill()
        program.process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize(
    ("config", "arguments", "said"),
    [
        ("server: {prot: 1}", (), (2, "server.prot")),
        ("server: [", (), (2, "YAML")),
        ("server: {host: os.environ/NOWHERE_TO_BE_FOUND}", (), (2, "NOWHERE_TO_BE_FOUND")),
        ("training: {schedule: now and then}", ("--check-config",), (2, "schedule")),
        ("server: {ca_file: /no/such.pem}", ("--check-config",), (2, "server.ca_file")),
        ("{}", ("--wrokers", "2"), (2, "--wrokers")),
        ("server: {host: 192.0.2.1}", (), (1, "192.0.2.1")),
    ],
)
def test_a_start_that_is_refused_is_one_line_and_says_by_its_status_whose_fault_it_was(
    tmp_path: Path, programs: list[Program], config: str, arguments: tuple[str, ...], said: tuple[int, str]
) -> None:
    programs.append(Program(tmp_path, config, *arguments))
    code, out, err = programs[0].ended()
    assert (code, out, len(err.splitlines())) == (said[0], "", 1)
    assert said[1] in err


def test_a_store_that_cannot_be_opened_refuses_the_start(tmp_path: Path, programs: list[Program]) -> None:
    (tmp_path / "program.db").write_text("this is no database, and it is long enough for SQLite to see that" * 20)
    programs.append(Program(tmp_path, "server: {port: 0}"))
    code, _, err = programs[0].ended()
    assert (code, len(err.splitlines())) == (1, 1)


def test_the_configuration_is_printed_without_its_secrets(tmp_path: Path, programs: list[Program]) -> None:
    programs.append(Program(tmp_path, "server: {admin_key: CANARY}", "--print-config"))
    code, out, err = programs[0].ended()
    assert (code, err, "CANARY" in out, "drain_seconds: 30" in out) == (0, "", False, True)


def test_the_configuration_is_printed_as_json_where_that_is_asked_for(tmp_path: Path, programs: list[Program]) -> None:
    programs.append(Program(tmp_path, "server: {admin_key: CANARY}", "--print-config", "--json"))
    code, out, _ = programs[0].ended()
    assert (code, json.loads(out)["server"]["drain_seconds"], "CANARY" in out) == (0, 30, False)


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_loses_no_record(tmp_path: Path, programs: list[Program], upstream: RawUpstream, workers: int) -> None:
    config = {
        "server": {"port": 0, "workers": workers},
        "upstreams": [{"name": "up", "base_url": upstream.base_url}],
    }
    programs.append(Program(tmp_path, json.dumps(config)))
    stdout = programs[0].process.stdout
    assert stdout is not None
    port = int(stdout.readline().split("127.0.0.1:")[1].split("/")[0])
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="k", max_retries=0) as client:
        answered = client.chat.completions.create(model="m", messages=QUESTION)
    assert answered.choices[0].message.content
    programs[0].process.send_signal(signal.SIGTERM)
    _, _, err = programs[0].ended()
    assert err == ""
    stored = RunningProxy.stored(f"sqlite:///{tmp_path / 'program.db'}")
    assert [one.outcome for one in stored] == ["complete"]


def listening(program: Program) -> int:
    assert program.process.stdout is not None
    return int(program.process.stdout.readline().split("127.0.0.1:")[1].split("/")[0])


@pytest.mark.parametrize("answered", [True, False])
def test_a_request_that_outlasts_the_drain_is_broken_or_a_503(
    tmp_path: Path, programs: list[Program], start_upstream: StartUpstream, *, answered: bool
) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(b"data: 1\n\n"), "hold"] if answered else ["hold"])
    up = [{"name": "up", "base_url": upstream.base_url}]
    programs.append(Program(tmp_path, json.dumps({"server": {"port": 0, "drain_seconds": 0}, "upstreams": up})))
    with posted(listening(programs[0])) as line:
        upstream.wait_seen()
        got = read_until(line, b"data: 1") if answered else b""
        programs[0].process.send_signal(signal.SIGTERM)
        while piece := line.recv(65536):
            got += piece
    _, _, err = programs[0].ended()
    assert (got.startswith(b"HTTP/1.1 200 "), got.startswith(b"HTTP/1.1 503 ")) == (answered, not answered)
    assert not got.endswith(b"0\r\n\r\n")
    assert len(err.splitlines()) == 1, err


def test_workers_that_cannot_start_end_the_program(tmp_path: Path, programs: list[Program]) -> None:
    programs.append(Program(tmp_path, json.dumps({"server": {"port": 0, "workers": 2}})))
    listening(programs[0])
    # The parent has read it; the workers, which are only being started, have not.
    (tmp_path / "c.yaml").write_text("server: {prot: 1}")
    code, _, err = programs[0].ended()
    assert code == 1
    assert {line.split("ERROR")[1] for line in err.splitlines()} == {
        " proxy.app: server.prot in c.yaml is not a known setting; did you mean server.port?"
    }
