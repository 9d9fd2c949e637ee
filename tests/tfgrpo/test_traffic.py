"""Groups from what was recorded: real rows in a real store, bodies as an upstream sends them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo import library, traffic
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies
from tfgrpo.weighing import Metric

BLOCK = library.render(library.from_texts(["Be brief."]), name="math", version=1)


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

    def add(
        self,
        question: str | list[dict[str, Any]],
        *answers: str,
        reward: float | None = None,
        choice: int = 0,
        comment: str | None = None,
        tools: list[dict[str, Any]] | None = None,
        metrics: Mapping[str, float] | None = None,
        user: str | None = None,
        **changes: Any,
    ) -> str:
        number = next(self._count)
        messages = [{"role": "user", "content": question}] if isinstance(question, str) else question
        said = [
            {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for index, text in enumerate(answers)
        ]
        bodies = Bodies(
            json.dumps({"model": "m", "messages": messages, "n": len(answers), "tools": tools, "user": user}).encode(),
            json.dumps({"id": f"c-{number}", "choices": said}).encode(),
            response_type="application/json",
        )
        row = exchange(number, **({"choices": len(answers)} | changes))
        placed = assignment(number, trajectory=row.trajectory, group=row.group, version=row.version, set=row.set)
        self._store.traffic.add(Batch(exchanges=((row, bodies),), assignments=(placed,)))
        if reward is not None:
            self._store.labels.add([label(number, value=reward, choice=choice, comment=comment)])
        for metric, value in (metrics or {}).items():
            own = {"feedback_id": f"{metric}-{number}", "metric": metric}
            self._store.labels.add([label(number, value=value, choice=choice, **own)])
        return row.id


@pytest.fixture
def log(store: Store) -> Log:
    return Log(store)


def test_rollouts_of_one_task_with_different_rewards_are_a_group_to_learn_from(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0)
    log.add("1+1?", "3", reward=0.0, comment="wrong sum")
    (group,) = traffic.labelled_groups(store, set_name="math")
    assert group.task.question == "1+1?"
    assert [(one.answer, one.reward, one.comments) for one in group.rollouts] == [
        ("2", 1.0, ()),
        ("3", 0.0, ("wrong sum",)),
    ]


def test_our_own_block_is_in_nothing_that_is_learned_from(store: Store, log: Log) -> None:
    asked = [{"role": "system", "content": f"Be kind.\n\n{BLOCK}"}, {"role": "user", "content": "1+1?"}]
    log.add(asked, f"{BLOCK} 2", reward=1.0)
    log.add(asked, "3", reward=0.0)
    (group,) = traffic.labelled_groups(store, set_name="math")
    texts = [message.text for one in group.rollouts for message in (*group.task.messages, *one.messages)]
    assert not [text for text in texts if "tfgrpo" in text or "Be brief." in text]


def test_the_answers_of_one_request_are_rollouts_of_their_own(store: Store, log: Log) -> None:
    first = log.add("1+1?", "2", "3", reward=1.0)
    store.labels.add([label(99, exchange=first, choice=1, value=0.0)])
    (group,) = traffic.labelled_groups(store, set_name="math")
    assert [(one.trajectory, one.answer, one.reward) for one in group.rollouts] == [
        ("t-1", "2", 1.0),
        ("t-1.1", "3", 0.0),
    ]


def test_a_group_knows_the_tools_that_its_requests_offered(store: Store, log: Log) -> None:
    tools = [{"type": "function", "function": {"name": "find_order"}}]
    log.add("1+1?", "2", reward=1.0, tools=tools)
    log.add("1+1?", "3", reward=0.0)
    (group,) = traffic.labelled_groups(store, set_name="math")
    assert group.task.tools == frozenset(["function", "find_order"])


def test_a_group_that_called_tools_which_no_request_offered_does_not_know_them(store: Store, log: Log) -> None:
    called = {"id": "c", "type": "function", "function": {"name": "find_order", "arguments": "{}"}}
    asked: list[dict[str, Any]] = [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c", "content": "2"},
    ]
    for reward in (1.0, 0.0):
        log.add(asked, "done", reward=reward)
    (group,) = traffic.labelled_groups(store, set_name="math")
    assert group.task.tools is None


def test_several_turns_are_one_rollout(store: Store, log: Log) -> None:
    for reward in (1.0, 0.0):
        first = log.add("1+1?", "let me see")
        name = f"t-{first.removeprefix('ex-')}"
        history = [
            {"role": "user", "content": "1+1?"},
            {"role": "assistant", "content": "let me see"},
            {"role": "user", "content": "well?"},
        ]
        log.add(history, f"{reward}", reward=reward, trajectory=name)
    (group,) = traffic.labelled_groups(store, set_name="math")
    assert [message.text for message in group.rollouts[0].messages] == ["let me see", "well?", "1.0"]


def test_example_answers_belong_to_the_task(store: Store, log: Log) -> None:
    asked = [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "3+3?"},
    ]
    log.add(asked, "6", reward=1.0)
    log.add(asked, "7", reward=0.0)
    (group,) = traffic.labelled_groups(store, set_name="math")
    assert [message.text for message in group.task.messages] == ["2+2?", "4", "3+3?"]
    assert [[message.text for message in one.messages] for one in group.rollouts] == [["6"], ["7"]]


def test_what_was_learned_from_is_left_out(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0)
    log.add("1+1?", "3", reward=0.0)
    assert traffic.labelled_groups(store, set_name="math", skip={"t-1"}) == []


def test_versions_are_never_pooled(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0, version=1)
    log.add("1+1?", "3", reward=0.0, version=2)
    assert traffic.labelled_groups(store, set_name="math") == []
    assert traffic.census(store, set_name="math").not_contrasting["mixed"] == 2


def test_each_group_that_does_not_contrast_has_its_reason(store: Store, log: Log) -> None:
    log.add("a", "x", group="a")
    log.add("b", "x", reward=1.0, group="b")
    log.add("c", "x", reward=1.0, group="c")
    log.add("c", "x", reward=1.0, group="c")
    log.add("d", "x", reward=1.0, group="d")
    log.add("d", "x", reward=0.5, group="d")
    counted = traffic.census(store, set_name="math")
    assert (counted.trajectories, counted.labelled, counted.groups, counted.contrasting) == (6, 5, 4, 1)
    assert counted.not_contrasting == {"no label": 1, "one rollout": 1, "one reward": 1, "mixed": 0}


def test_tasks_that_nearly_are_one_are_shown(store: Store, log: Log) -> None:
    text = "Please look up the state of the order and tell the customer kindly what happens next in shop"
    for name in ("7", "9"):
        log.add(f"{text} {name}", "x", reward=1.0, group=name)
    assert [(near.left, near.right) for near in traffic.census(store).near] == [("7", "9")]


def test_an_answer_that_broke_off_is_not_learned_from(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0)
    log.add("1+1?", "3", reward=0.0, outcome="broken")
    assert traffic.labelled_groups(store, set_name="math") == []


def test_traffic_under_no_set_is_apart(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0, set=None)
    log.add("1+1?", "3", reward=0.0, set=None)
    assert traffic.census(store, set_name="math").trajectories == 0
    assert traffic.census(store, unnamed=True).contrasting == 1


def test_without_labels_rollouts_that_answer_differently_are_a_group_as_well(store: Store, log: Log) -> None:
    log.add("1+1?", "2")
    log.add("1+1?", "3", reward=0.0)
    (group,) = traffic.answered_groups(store, set_name="math")
    assert [(one.answer, one.reward) for one in group.rollouts] == [("2", None), ("3", None)]


def test_rollouts_that_answer_alike_are_none(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0)
    log.add("1+1?", " 2", reward=0.0)
    assert not traffic.answered_groups(store, set_name="math")


def test_one_rollout_is_none(store: Store, log: Log) -> None:
    first = log.add("1+1?", "2")
    log.add("1+1?", "3", trajectory="other")
    assert not traffic.answered_groups(store, set_name="math", skip=["other"])
    assert first


METRICS = {"reward": Metric(), "resolved": Metric(3.0)}


def test_metrics_combine_into_the_reward_by_their_weights(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0, metrics={"resolved": 0.0})
    log.add("1+1?", "3", reward=0.0, metrics={"resolved": 1.0})
    (group,) = traffic.labelled_groups(store, set_name="math", metrics=METRICS)
    assert [rollout.reward for rollout in group.rollouts] == [0.25, 0.75]


def test_all_rollouts_of_a_group_are_weighed_by_the_metrics_that_all_of_them_have(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0, metrics={"resolved": 0.0})
    log.add("1+1?", "3", reward=1.0)
    assert traffic.census(store, set_name="math", metrics=METRICS).not_contrasting["one reward"] == 1


def test_without_a_common_metric_those_of_most_rollouts_count(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0)
    log.add("1+1?", "3", metrics={"resolved": 0.0})
    log.add("1+1?", "4", metrics={"resolved": 1.0})
    (group,) = traffic.labelled_groups(store, set_name="math", metrics=METRICS)
    assert [(rollout.answer, rollout.reward) for rollout in group.rollouts] == [("3", 0.0), ("4", 1.0)]
