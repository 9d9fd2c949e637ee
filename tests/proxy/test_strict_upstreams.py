"""What is injected is taken by servers that are strict, and what they refuse is refused in their own words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import StartProxy, StartUpstream
from tests.misbehaving import strict_messages, strict_template
from tests.raw_client import asked
from tests.upstreams import Script

_USER = {"role": "user", "content": "hi"}
_SAID = {"role": "assistant", "content": "ho"}
_MARK = {"cache_control": {"type": "ephemeral"}}
_TEXT = {"type": "text", "text": "be kind"}
_CHAT = "/v1/chat/completions"
_MESSAGES = "/v1/messages"


def _sent(path: str, body: dict[str, Any]) -> bytes:
    raw = json.dumps({"model": "m", "max_tokens": 9, **body}).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nx-tfgrpo-set: s\r\ncontent-length: {len(raw)}\r\n\r\n"
    return head.encode() + raw


def _chat(*first: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [*first, _USER, _SAID, _USER]}


def _messages(**more: Any) -> dict[str, Any]:
    return {"messages": [_USER], **more}


@pytest.mark.parametrize(
    ("script", "path", "body"),
    [
        (strict_template, _CHAT, _chat()),
        (strict_template, _CHAT, _chat({"role": "system", "content": "be kind"})),
        (strict_template, _CHAT, _chat({"role": "system", "content": ""})),
        (strict_template, _CHAT, _chat({"role": "system", "content": [_TEXT]})),
        (strict_template, _CHAT, _chat({"role": "developer", "content": "be kind"})),
        (strict_messages, _MESSAGES, _messages()),
        (strict_messages, _MESSAGES, _messages(system="be kind")),
        (strict_messages, _MESSAGES, _messages(system="")),
        (strict_messages, _MESSAGES, _messages(system=[])),
        (strict_messages, _MESSAGES, _messages(system=[_TEXT])),
        (strict_messages, _MESSAGES, _messages(system=[{**_TEXT, **_MARK}] * 4)),
        (strict_messages, _MESSAGES, _messages(system=[{**_TEXT, **_MARK}], tools=[{"name": "t", **_MARK}] * 3)),
    ],
)
def test_what_is_injected_is_taken(
    start_proxy: StartProxy, start_upstream: StartUpstream, script: Script, path: str, body: dict[str, Any]
) -> None:
    upstream = start_upstream(script)
    proxy = start_proxy(upstream.base_url)
    proxy.deploy("s", "Check the units.")
    for _ in range(2):
        answered = asked(proxy.port, _sent(path, body))
        assert (answered.status, dict(answered.headers)[b"x-tfgrpo-set"]) == (200, b"s@1")
        assert upstream.seen[-1].body.count(b"Check the units.") == 1


@pytest.mark.parametrize(
    ("script", "path", "body"),
    [
        (strict_template, _CHAT, _chat(_USER, {"role": "system", "content": "later"})),
        (strict_template, _CHAT, _chat({"role": "system", "content": "a"}, {"role": "developer", "content": "b"})),
        (strict_messages, _MESSAGES, _messages(system=[{"type": "text", "text": ""}])),
        (strict_messages, _MESSAGES, _messages(system=[{**_TEXT, **_MARK}] * 5)),
        (strict_messages, _MESSAGES, _messages(system={"text": "no list"})),
    ],
)
def test_what_is_refused_is_refused_in_the_servers_words(
    start_proxy: StartProxy, start_upstream: StartUpstream, script: Script, path: str, body: dict[str, Any]
) -> None:
    upstream = start_upstream(script)
    proxy = start_proxy(upstream.base_url)
    proxy.deploy("s", "Check the units.")
    direct, through = asked(upstream.port, _sent(path, body)), asked(proxy.port, _sent(path, body))
    assert (through.status, through.body) == (direct.status, direct.body)
    assert direct.status == 400
