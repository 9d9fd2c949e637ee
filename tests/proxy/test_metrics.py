from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.upstreams import PATIENCE, chat

ROOT = Path(__file__).parents[2]
ON: dict[str, Any] = {"telemetry": {"metrics": True}}


def scraped(proxy: RunningProxy) -> dict[str, float]:
    answered = proxy.request("GET", "/metrics")
    assert answered.status == 200, answered.body
    return parsed(answered.body)


def parsed(body: bytes) -> dict[str, float]:
    lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def total(found: dict[str, float], name: str, *having: str) -> float:
    return sum(value for key, value in found.items() if key.split("{")[0] == name and all(one in key for one in having))


@pytest.fixture
def measured(start_proxy: StartProxy, start_upstream: StartUpstream) -> RunningProxy:
    return start_proxy(start_upstream(chat).base_url, **ON)


def test_without_the_setting_there_are_no_metrics(start_proxy: StartProxy) -> None:
    assert start_proxy().request("GET", "/metrics").status == 404


def test_metrics_are_for_the_administrator(start_proxy: StartProxy) -> None:
    proxy = start_proxy(**ON, server={"admin_key": "k" * 20})
    assert proxy.request("GET", "/metrics").status == 401
    assert proxy.request("GET", "/metrics", None, {"authorization": f"Bearer {'k' * 20}"}).status == 200


def test_an_exchange_is_counted_under_the_names_of_opentelemetry(measured: RunningProxy) -> None:
    measured.chat()
    found = scraped(measured)
    wanted = ('gen_ai_operation_name="chat"', 'gen_ai_request_model="m"', 'gen_ai_provider_name="up"')
    assert total(found, "gen_ai_client_operation_duration_seconds_count", *wanted, 'error_type=""') == 1
    assert total(found, "gen_ai_server_time_to_first_token_seconds_count", *wanted) == 1
    assert total(found, "gen_ai_client_token_usage_count", 'gen_ai_token_type="output"') == 1


def test_what_the_proxy_adds_is_measured(measured: RunningProxy) -> None:
    measured.chat()
    found = scraped(measured)
    assert total(found, "tfgrpo_added_latency_seconds_count") == 1
    assert 0 < total(found, "tfgrpo_added_latency_seconds_sum") < 1


def test_deployments_arms_and_injected_tokens_are_shown(measured: RunningProxy) -> None:
    measured.deploy("math", "Check the sign.", shares={"control": 0.25})
    for number in range(8):
        measured.chat(f"task {number}", prefix="/set/math")
    found = scraped(measured)
    assert total(found, "tfgrpo_deployment_version", 'set="math"', 'arm="live"') == 1
    assert total(found, "tfgrpo_deployment_share", 'arm="control"') == 0.25
    assert total(found, "tfgrpo_exchanges_total", 'set="math"') == 8
    assert total(found, "tfgrpo_injected_tokens_total", 'set="math"') > 0


def test_a_client_cannot_make_any_number_of_series(measured: RunningProxy) -> None:
    for number in range(110):
        measured.chat(model=f"model-{number}")
    models = {found[1] for key in scraped(measured) if (found := re.search(r'request_model="([^"]+)"', key))}
    assert len(models) == 101


@contextmanager
def many(folder: Path, upstream: str) -> Iterator[int]:
    config = {
        "server": {"port": 0, "workers": 2},
        "store": {"url": f"sqlite:///{folder}/s.db"},
        "upstreams": [{"name": "up", "base_url": upstream}],
        **ON,
    }
    (folder / "c.yaml").write_text(json.dumps(config))
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "proxy", "--config", str(folder / "c.yaml")], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def asked(port: int) -> int:
    """Have one exchange, and return which worker it was."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    line.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    line.getresponse().read()
    line.request("GET", "/status")
    worker: int = json.loads(line.getresponse().read())["worker"]
    line.close()
    return worker


def counted(port: int) -> float:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    line.request("GET", "/metrics")
    found = parsed(line.getresponse().read())
    line.close()
    return total(found, "tfgrpo_exchanges_total")


def test_each_worker_answers_for_all_of_them(tmp_path: Path, start_upstream: StartUpstream) -> None:
    with many(tmp_path, start_upstream(chat).base_url) as port, ThreadPoolExecutor(16) as pool:
        workers: list[int] = []
        while len(set(workers)) < 2:
            workers += pool.map(asked, [port] * 16)
        assert {counted(port) for _ in range(6)} == {float(len(workers))}
