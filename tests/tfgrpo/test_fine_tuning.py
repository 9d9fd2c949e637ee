from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.tfgrpo.test_traffic import BLOCK, Log
from tests.tfgrpo.test_traffic import log as log
from tests.tfgrpo.test_traffic import store as store
from tfgrpo.fine_tuning import Examples, examples
from tfgrpo.store import Store

LOOK_UP = {"name": "look_up", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
ASKED: Sequence[dict[str, Any]] = ({"role": "user", "content": "Who?"}, {"role": "assistant", "tool_calls": [CALL]})
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "Ada"}


def found(store: Store, *, min_reward: float = 0.5) -> Examples:
    return examples(store, set_name="math", unnamed=False, min_reward=min_reward)


def one(store: Store) -> Mapping[str, Any]:
    (line,) = found(store).lines
    made: Mapping[str, Any] = json.loads(line)
    return made


def test_the_best_rollouts_of_each_task_are_examples(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0)
    log.add("1+1?", "3", reward=0.7)
    log.add("1+1?", "5", reward=0.2)
    log.add("2+2?", "4", reward=0.9, group="g2")
    log.add("3+3?", "7", reward=0.4, group="g3")
    made = found(store)
    assert [json.loads(line)["messages"][-1]["content"] for line in made.lines] == ["4", "2"]
    assert made.left_out == {"a reward below 0.5": 2, "another rollout of the task was better": 1}


def test_an_example_is_the_conversation_without_our_block(store: Store, log: Log) -> None:
    log.add(
        [{"role": "developer", "content": f"Be kind.\n\n{BLOCK}"}, {"role": "user", "content": "Hi"}], "Ho", reward=1
    )
    assert one(store) == {
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Ho"},
        ]
    }


def test_the_same_conversation_is_there_once(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1)
    log.add("1+1?", "2", reward=1)
    assert found(store).left_out == {"the same conversation again": 1}


def test_a_choice_of_several_is_an_example_of_its_own(store: Store, log: Log) -> None:
    log.add("1+1?", "3", "2", reward=1, choice=1)
    assert one(store)["messages"][-1] == {"role": "assistant", "content": "2"}


def test_tool_calls_and_tools_come_along(store: Store, log: Log) -> None:
    log.add([*ASKED, RESULT], "Ada.", reward=1, tools=[{"type": "function", "function": LOOK_UP}])
    made = one(store)
    assert made["messages"] == [
        ASKED[0],
        {**ASKED[1], "tool_calls": [CALL]},
        RESULT,
        {"role": "assistant", "content": "Ada."},
    ]
    assert made["tools"] == [{"type": "function", "function": LOOK_UP}]


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "look_up", "input_schema": LOOK_UP["parameters"]},
        {"type": "function", "name": "look_up", "parameters": LOOK_UP["parameters"], "strict": None},
    ],
)
def test_tools_of_the_other_apis_are_written_as_functions(store: Store, log: Log, tool: dict[str, Any]) -> None:
    log.add("Who?", "Ada.", reward=1, tools=[tool])
    assert one(store)["tools"] == [{"type": "function", "function": LOOK_UP}]


@pytest.mark.parametrize(
    ("messages", "tools", "reason"),
    [
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}], [], "an image"),
        ([{"role": "wizard", "content": "x"}], [], "the role 'wizard'"),
        ([*ASKED], [], "a tool call without its result"),
        ([ASKED[0], RESULT], [], "a tool result without its call"),
        ([ASKED[0], {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}], [], "without an id"),
        ([ASKED[0]], [{"type": "web_search", "name": "web_search"}], "a tool that is no function"),
        ([{"role": "user", "content": "\ud800"}], [], "surrogate"),
    ],
)
def test_what_the_format_cannot_say_is_left_out_and_counted(
    store: Store, log: Log, messages: list[dict[str, Any]], tools: list[dict[str, Any]], reason: str
) -> None:
    log.add(messages, "Ada.", reward=1, tools=tools)
    made = found(store)
    assert (made.lines, [reason in said for said in made.left_out]) == ((), [True])


def test_traffic_that_nobody_judged_is_no_example(store: Store, log: Log) -> None:
    log.add("1+1?", "2")
    assert found(store) == Examples((), {})


def test_secrets_and_personal_data_are_placeholders_in_every_part(store: Store, log: Log) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "mail", "arguments": '{"to": "ann@shop.example"}'}}
    asked = (
        {"role": "user", "content": "I am bob@shop.example, say open-sesame"},
        {"role": "assistant", "tool_calls": [call]},
    )
    log.add([*asked, {"role": "tool", "tool_call_id": "c1", "content": "sent to ann@shop.example"}], "Done", reward=1)
    made = examples(store, set_name="math", unnamed=False, min_reward=0.5, ours=("open-sesame",))
    (line,) = made.lines
    assert made.redacted == 1
    assert not [held for held in ("ann@", "bob@", "open-sesame") if held in line]
    called = json.loads(line)["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(called) == {"to": "[redacted e-mail]"}


def test_without_any_nothing_is_counted_as_redacted(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1)
    assert found(store).redacted == 0
