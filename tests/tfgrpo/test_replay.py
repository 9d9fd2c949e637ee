"""Logged tasks to be run afresh: real rows in a real store, bodies as clients of three APIs send them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo import library, replay
from tfgrpo.errors import Conflict
from tfgrpo.replay import logged_tasks
from tfgrpo.store import Batch, Store
from tfgrpo.types import FIRST_DRAFT, Bodies

JSON = dict[str, Any]
BLOCK = library.render(library.from_texts(["Be brief."]), name="math", version=1)
PIXEL = "data:image/png;base64,iVBORw0KGgo="

ASKED: dict[str, JSON] = {
    "chat": {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "1+1?"}]},
    "responses": {"instructions": "Be kind.", "input": "1+1?"},
    "messages": {"system": "Be kind.", "messages": [{"role": "user", "content": "1+1?"}]},
}
SAID: dict[str, JSON] = {
    "chat": {"choices": [{"index": 0, "message": {"role": "assistant", "content": "2"}}]},
    "responses": {"status": "completed", "output": [{"role": "assistant", "content": "2"}]},
    "messages": {"content": [{"type": "text", "text": "2"}]},
}
CALLED: dict[str, JSON] = {
    "chat": {"choices": [{"message": {"tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": "{}"}}]}}]},
    "responses": {
        "status": "completed",
        "output": [{"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}],
    },
    "messages": {"content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {}}]},
}
PICTURED: dict[str, JSON] = {
    "chat": {
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}],
    },
    "responses": {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": PIXEL}]}]},
    "messages": {
        "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "iVBO"}}]}]
    },
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/t.db", migrate=True)
    yield opened
    opened.close()


class Log:
    """Records exchanges and labels as the proxy would."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._count = itertools.count(1)

    def add(self, asked: JSON, said: JSON, *, reference: str | None = None, **changes: Any) -> None:
        number = next(self._count)
        row = exchange(number, **({"group": f"g{number}"} | changes))
        bodies = Bodies(
            json.dumps({"model": "m", **asked}).encode(), json.dumps(said).encode(), response_type="application/json"
        )
        placed = assignment(number, trajectory=row.trajectory, group=row.group, version=row.version)
        self._store.traffic.add(Batch(exchanges=((row, bodies),), assignments=(placed,)))
        if reference is not None:
            self._store.labels.add([label(number, reference=reference)])


@pytest.fixture
def log(store: Store) -> Log:
    return Log(store)


@pytest.mark.parametrize("api", ASKED)
def test_a_logged_request_of_any_api_is_a_task_of_plain_messages(store: Store, log: Log, api: str) -> None:
    log.add(ASKED[api], SAID[api], dialect=api)
    (task,) = logged_tasks(store, set_name="math").tasks
    assert [(message.role, message.text) for message in task.messages] == [("system", "Be kind."), ("user", "1+1?")]


def test_rollouts_of_one_group_are_one_task_under_the_groups_key(store: Store, log: Log) -> None:
    for _ in range(3):
        log.add(ASKED["chat"], SAID["chat"], group="same")
    assert [task.key for task in logged_tasks(store, set_name="math").tasks] == ["same"]


def test_a_task_is_the_same_under_any_version(store: Store, log: Log) -> None:
    log.add(ASKED["chat"], SAID["chat"], group="same", version=0)
    log.add(ASKED["chat"], SAID["chat"], group="same", version=1)
    assert len(logged_tasks(store, set_name="math").tasks) == 1


def test_our_own_block_is_no_part_of_a_task(store: Store, log: Log) -> None:
    log.add({"messages": [{"role": "user", "content": f"1+1?\n\n{BLOCK}"}]}, SAID["chat"])
    (task,) = logged_tasks(store, set_name="math").tasks
    assert task.question.strip() == "1+1?"


def test_the_request_keeps_its_own_parameters(store: Store, log: Log) -> None:
    log.add({**ASKED["chat"], "max_tokens": 9, "temperature": 0, "stream": True}, SAID["chat"])
    (task,) = logged_tasks(store, set_name="math").tasks
    assert task.parameters == {"max_tokens": 9}


def test_the_newest_reference_of_a_groups_labels_is_the_right_answer(store: Store, log: Log) -> None:
    log.add(ASKED["chat"], SAID["chat"], group="same", reference="3")
    log.add(ASKED["chat"], SAID["chat"], group="same", reference="2")
    log.add(ASKED["chat"], SAID["chat"], group="same")
    (task,) = logged_tasks(store, set_name="math", need_reference=True).tasks
    assert task.reference == "2"


def test_a_task_without_the_reference_that_a_grader_needs_is_counted(store: Store, log: Log) -> None:
    log.add(ASKED["chat"], SAID["chat"], reference="2")
    log.add(ASKED["chat"], SAID["chat"])
    logged = logged_tasks(store, set_name="math", need_reference=True)
    assert (len(logged.tasks), logged.skipped) == (1, {replay.NO_REFERENCE: 1})


def test_a_task_knows_the_tools_that_its_request_offered(store: Store, log: Log) -> None:
    tools = [{"type": "function", "function": {"name": "find_order"}}]
    log.add({"messages": [{"role": "user", "content": "1+1?"}], "tools": tools}, SAID["chat"])
    (task,) = logged_tasks(store, set_name="math").tasks
    assert task.tools == frozenset(["function", "find_order"])


@pytest.mark.parametrize("api", CALLED)
def test_a_task_whose_trajectory_calls_tools_is_counted_and_left_to_an_agent(store: Store, log: Log, api: str) -> None:
    log.add(ASKED[api], SAID[api], dialect=api)
    log.add(ASKED[api], CALLED[api], dialect=api)
    logged = logged_tasks(store, set_name="math")
    assert (len(logged.tasks), logged.skipped) == (1, {replay.TOOLS: 1})
    assert len(logged_tasks(store, set_name="math", tools=True).tasks) == 2


def test_a_tool_call_in_any_trajectory_of_a_group_speaks_for_all(store: Store, log: Log) -> None:
    log.add(ASKED["chat"], SAID["chat"], group="same")
    log.add(ASKED["chat"], CALLED["chat"], group="same")
    with pytest.raises(Conflict, match="1 logged tasks hold tool calls"):
        logged_tasks(store, set_name="math")


@pytest.mark.parametrize("api", PICTURED)
def test_a_task_with_an_image_is_counted_for_only_a_note_of_it_is_there(store: Store, log: Log, api: str) -> None:
    log.add(PICTURED[api], SAID[api], dialect=api)
    with pytest.raises(Conflict, match="only a note is kept"):
        logged_tasks(store, set_name="math", tools=True)


def test_a_task_that_continues_what_the_provider_keeps_is_counted(store: Store, log: Log) -> None:
    log.add({**ASKED["responses"], "previous_response_id": "resp_0"}, SAID["responses"], dialect="responses")
    with pytest.raises(Conflict, match="continue a conversation"):
        logged_tasks(store, set_name="math")


def test_a_store_without_bodies_is_said_so(store: Store) -> None:
    store.traffic.add(Batch(exchanges=((exchange(1), Bodies()),), assignments=(assignment(1),)))
    with pytest.raises(Conflict, match="1 logged tasks have no request that can be read: its body is gone"):
        logged_tasks(store, set_name="math")


def test_an_empty_store_is_said_so(store: Store) -> None:
    with pytest.raises(Conflict, match="nothing is recorded"):
        logged_tasks(store, set_name="math")


def test_what_a_run_made_under_a_draft_is_no_logged_task(store: Store, log: Log) -> None:
    log.add(ASKED["chat"], SAID["chat"], group="logged")
    log.add(ASKED["chat"], SAID["chat"], group="made", version=FIRST_DRAFT + 1)
    assert [task.key for task in logged_tasks(store, set_name="math").tasks] == ["logged"]


def test_traffic_under_no_set_can_be_replayed(store: Store, log: Log) -> None:
    log.add(ASKED["chat"], SAID["chat"], set=None)
    assert len(logged_tasks(store, unnamed=True).tasks) == 1
