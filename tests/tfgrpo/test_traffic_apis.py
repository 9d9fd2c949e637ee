"""Trajectories with tools, further turns and images as clients of three APIs send them: what the optimizer reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo import traffic
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Rollout

JSON = dict[str, Any]
PIXEL = "iVBORw0KGgo="
TEXT = "What is on it?"

ASKED: dict[str, JSON] = {
    "chat": {
        "role": "user",
        "content": [
            {"type": "text", "text": TEXT},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        ],
    },
    "responses": {
        "role": "user",
        "content": [
            {"type": "input_text", "text": TEXT},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
        ],
    },
    "messages": {
        "role": "user",
        "content": [
            {"type": "text", "text": TEXT},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        ],
    },
}
CALLED: dict[str, JSON] = {
    "chat": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "zoom", "arguments": '{"x":2}'}}],
    },
    "responses": {"type": "function_call", "call_id": "c1", "name": "zoom", "arguments": '{"x":2}'},
    "messages": {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "zoom", "input": {"x": 2}}]},
}
RESULT: dict[str, JSON] = {
    "chat": {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    "responses": {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
    "messages": {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": [
                    {"type": "text", "text": "a cat"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ],
            }
        ],
    },
}


def request(api: str, *said: JSON) -> bytes:
    return json.dumps({"model": "m", "input" if api == "responses" else "messages": said}).encode()


def response(api: str, said: JSON) -> bytes:
    if api == "chat":
        return json.dumps({"id": "c", "choices": [{"index": 0, "message": said}]}).encode()
    if api == "responses":
        return json.dumps({"id": "r", "status": "completed", "output": [said]}).encode()
    return json.dumps({"id": "m", "content": said["content"]}).encode()


def answer(api: str, text: str) -> JSON:
    content: Any = [{"type": "text", "text": text}] if api == "messages" else text
    return {"role": "assistant", "content": content}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/t.db", migrate=True)
    yield opened
    opened.close()


def rollouts(store: Store, api: str) -> tuple[Rollout, ...]:
    """Two trajectories of two exchanges each: a call of a tool, its result, an answer that is labelled."""
    number = 0
    for name, text, reward in (("a", "a cat", 1.0), ("b", "a dog", 0.0)):
        asked, called, result = ASKED[api], CALLED[api], RESULT[api]
        turns = [
            (request(api, asked), response(api, called)),
            (request(api, asked, called, result), response(api, answer(api, text))),
        ]
        for one, other in turns:
            number += 1
            row = exchange(number, trajectory=name, dialect=api)
            bodies = Bodies(one, other, response_type="application/json")
            store.traffic.add(Batch(exchanges=((row, bodies),), assignments=(assignment(number, trajectory=name),)))
        store.labels.add([label(number, value=reward)])
    (group,) = traffic.labelled_groups(store, set_name="math")
    assert group.task.question.startswith(TEXT)
    return group.rollouts


@pytest.mark.parametrize("api", ASKED)
def test_a_trajectory_of_several_exchanges_is_one_run_of_messages(store: Store, api: str) -> None:
    first, _ = rollouts(store, api)
    assert [message.role for message in first.messages] == ["assistant", "tool", "assistant"]
    assert first.answer == "a cat"


@pytest.mark.parametrize("api", ASKED)
def test_calls_of_tools_and_their_results_are_kept(store: Store, api: str) -> None:
    first, _ = rollouts(store, api)
    (call,) = first.messages[0].tool_calls
    assert (call.name, json.loads(call.arguments)) == ("zoom", {"x": 2})
    assert first.messages[1].text.startswith("a cat")


@pytest.mark.parametrize("api", ASKED)
def test_a_note_stands_for_an_image(store: Store, api: str) -> None:
    rollouts(store, api)
    (group,) = traffic.labelled_groups(store, set_name="math")
    said = [*group.task.messages, *(message for one in group.rollouts for message in one.messages)]
    assert re.fullmatch(rf"{re.escape(TEXT)}\[(image|image_url|input_image) [0-9a-f]{{12}}\]", group.task.question)
    assert not [message for message in said if PIXEL in message.text]
