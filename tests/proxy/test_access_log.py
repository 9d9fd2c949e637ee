from __future__ import annotations

import json

import pytest

from tests.conftest import StartProxy, StartUpstream
from tests.upstreams import chat


def test_an_exchange_is_one_line_of_json_without_key_query_or_content(
    start_proxy: StartProxy, start_upstream: StartUpstream, capfd: pytest.CaptureFixture[str]
) -> None:
    proxy = start_proxy(start_upstream(chat).base_url, telemetry={"access_log": True})
    body = {"model": "m", "messages": [{"role": "user", "content": "CANARY-content"}]}
    sent = {"content-type": "application/json", "authorization": "Bearer CANARY-key"}
    proxy.request("POST", "/v1/chat/completions?key=CANARY-query", body, sent)
    proxy.stop()
    (line,) = capfd.readouterr().err.splitlines()
    said = json.loads(line)
    assert (said["path"], said["status"], said["outcome"], said["model"]) == (
        "/v1/chat/completions",
        200,
        "complete",
        "m",
    )
    assert 0 <= said["added_seconds"] <= said["first_byte_seconds"] <= said["seconds"]
    assert "CANARY" not in line


def test_without_the_setting_nothing_is_logged(
    start_proxy: StartProxy, start_upstream: StartUpstream, capfd: pytest.CaptureFixture[str]
) -> None:
    proxy = start_proxy(start_upstream(chat).base_url)
    proxy.chat()
    proxy.stop()
    assert capfd.readouterr().err == ""
