"""Agent programs as they speak: what one run of theirs sends is one trajectory, whatever they rewrite between turns.

The requests have the shapes that coding agents were seen to send (docs/agents.md names them), with texts of our own.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy import injection
from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.proxy.apis import Body, speaks
from tests.upstreams import RawUpstream
from tfgrpo import library

LESSON = "Check the units."
BLOCK = library.render(library.from_texts([LESSON]), name="math", version=1)
KEYS = {"x-api-key": "sk-client", "x-tfgrpo-set": "math"}
MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(speaks)


@pytest.fixture
def proxy(start_proxy: StartProxy, upstream: RawUpstream) -> RunningProxy:
    running = start_proxy(upstream.base_url)
    running.deploy("math", LESSON)
    return running


class Messenger:
    """A coding agent on the Messages API.

    It sets the cache mark on the newest text anew, speaks of its model in its system text, and has a system message in
    the middle of the conversation.
    """

    def __init__(self, proxy: RunningProxy) -> None:
        self._proxy = proxy
        self.model = "large"
        self.tools: list[Body] = []
        self.turns: list[Body] = []

    def body(self) -> Body:
        system = [_text("billing: version=1.2.a; entry=cli;"), {**_text(f"You run on {self.model}."), **MARK}]
        *earlier, last = self.turns
        marked = {**last, "content": [*last["content"][:-1], {**last["content"][-1], **MARK}]}
        notice = {"role": "system", "content": "Helpers: reader, writer."}
        return {
            "model": "m",
            "messages": [*earlier, marked, notice] if not earlier else [earlier[0], notice, *earlier[1:], marked],
            "system": system,
            "tools": self.tools,
            "metadata": {"user_id": '{"session_id": "5f0c"}'},
            "stream": True,
        }

    def ask(self, *content: Body) -> list[Body]:
        """Send one turn and return what the answer holds, thoughts and all."""
        self.turns.append({"role": "user", "content": list(content)})
        answered = self._proxy.request("POST", "/v1/messages?beta=true", self.body(), KEYS)
        events = [json.loads(line[6:]) for line in answered.body.decode().split("\n") if line.startswith("data: {")]
        blocks = [one["content_block"] for one in events if one["type"] == "content_block_start"]
        texts = [one["delta"]["text"] for one in events if one.get("delta", {}).get("type") == "text_delta"]
        blocks[0] = _text("".join(texts))
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
        self.turns.append({"role": "assistant", "content": [thought, *blocks]})
        return blocks


def test_a_run_on_messages_is_one_trajectory_of_one_line(proxy: RunningProxy, upstream: RawUpstream) -> None:
    agent = Messenger(proxy)
    agent.tools = [{"name": "look", "input_schema": {"type": "object"}}]
    call = agent.ask(_text("It is noon."), _text("2+2?"))[-1]
    agent.tools = []
    agent.ask({"type": "tool_result", "tool_use_id": call["id"], "content": "4", "is_error": False})
    agent.model = "large, in a smaller window"
    agent.ask(_text("and 3+3?"))
    agent.ask(_text("thanks"))
    _is_one_line(proxy, 4)
    sent = [one.json for one in upstream.seen if one.target.startswith("/v1/messages")]
    assert [body["system"][-1]["text"] for body in sent] == [BLOCK] * 4


def test_a_talk_without_tools_goes_on_when_the_system_text_changed(proxy: RunningProxy) -> None:
    agent = Messenger(proxy)
    agent.ask(_text("2+2?"))
    agent.model = "small"
    agent.ask(_text("and 3+3?"))
    _is_one_line(proxy, 2)


def test_a_run_on_responses_is_one_trajectory_of_one_line(proxy: RunningProxy, upstream: RawUpstream) -> None:
    items: list[Body] = [
        {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [{"type": "custom", "name": "run"}]},
        _item("developer", "You are a coding agent."),
        _item("user", "<where><folder>work</folder></where>"),
        _item("user", "2+2?"),
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
    ]
    tools: list[Body] = [{"type": "function", "name": "look", "parameters": {}}]
    call = _respond(proxy, items, tools)[-1]
    items.append({"type": "function_call_output", "id": "fco_1", "call_id": call["call_id"], "output": "4"})
    _respond(proxy, items, [])
    items += [_item("developer", "You may read only."), _item("user", "and 3+3?")]
    _respond(proxy, items, [])
    items.append(_item("user", "thanks"))
    last = _respond(proxy, items, [])
    _is_one_line(proxy, 4)
    sent = json.dumps(_response_body(items[: -len(last)], [])).encode()
    assert upstream.seen[-1].body == injection.inject(sent, "responses", BLOCK)


def _is_one_line(proxy: RunningProxy, turns: int) -> None:
    found = proxy.recorded()
    assert [one.parent for one in found] == [None, *(one.id for one in found[:-1])]
    assert {(one.trajectory, one.arm, one.version) for one in found} == {(found[0].trajectory, "live", 1)}
    assert len([one.completion_id for one in found if one.completion_id]) == turns


def _respond(proxy: RunningProxy, items: list[Body], tools: list[Body]) -> list[Body]:
    """Send all that was said and keep the answer's items with it; nothing of it stays with the API."""
    answered = proxy.request("POST", "/v1/responses", _response_body(items, tools), KEYS)
    events = [json.loads(line[6:]) for line in answered.body.decode().split("\n") if line.startswith("data: {")]
    output: list[Body] = events[-1]["response"]["output"]
    items += [{**one, "encrypted_content": "gAAA", "content": None} if _is_thought(one) else one for one in output]
    return output


def _response_body(items: list[Body], tools: list[Body]) -> Body:
    more: dict[str, Any] = {"store": False, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "5f0c"}
    return {"model": "m", "input": items, "tools": tools, "stream": True, **more}


def _is_thought(item: Body) -> bool:
    return bool(item["type"] == "reasoning")


def _text(text: str) -> Body:
    return {"type": "text", "text": text}


def _item(role: str, text: str) -> Body:
    return {"type": "message", "id": f"msg_{role}", "role": role, "content": [{"type": "input_text", "text": text}]}
