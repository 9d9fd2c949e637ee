"""Where groups come from, on the command line: logged tasks run afresh, the user's agent, the modes of ground truth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import StartProxy
from tests.tfgrpo.scripted import JSON, Reply, serving, stage
from tests.tfgrpo.test_main import ONE_GROUP, record, result, run, url
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_trainer import optimizer
from tfgrpo.store import Store

AGENT = """
import json, urllib.request

def ask(task, base_url, headers):
    print("hm")
    body = json.dumps({"model": "policy", "messages": [{"role": "user", "content": task.question}]}).encode()
    sent = {**headers, "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{base_url}/chat/completions", body, sent)) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]
"""


@pytest.fixture
def judged(home: Path) -> Path:
    (home / "judge.py").write_text("def grade(answer):\n    print('hm')\n    return 'yes' in answer\n")
    (home / "mine.py").write_text(AGENT)
    return home


def configure(home: Path, **training: object) -> None:
    # The paper's recipe holds no task back, so that a handful of them is enough.
    training = {"group_size": 2, "epochs": 1, "recipe": "paper", **training}
    (home / "config.yaml").write_text(json.dumps({"training": training, "safety": ONE_GROUP}))


def policy() -> tuple[list[JSON], Callable[[JSON], Reply]]:
    """A policy that is right every second time, beside an optimizer; and what the policy was asked."""
    asked: list[JSON] = []

    def reply(request: JSON) -> Reply:
        if request["model"] != "policy":
            return optimizer(request)
        asked.append(request)
        return "yes" if len(asked) % 2 else "no"

    return asked, reply


async def test_logged_tasks_are_run_afresh_and_learned_from(judged: Path) -> None:
    configure(judged)
    record(judged, tasks=3)
    asked, reply = policy()
    async with serving(reply) as endpoint:
        learned = await result(
            judged, "train", "--set", "s", "--from", "replay", "--grader", "python:judge:grade", endpoint=endpoint
        )
    assert {request["messages"][-1]["content"] for request in asked} == {"task 0", "task 1", "task 2"}
    assert (len(asked), learned["version"], learned["ground_truth"]) == (6, 1, "reward and reference")


async def test_what_a_grader_prints_stands_beside_the_result(judged: Path) -> None:
    configure(judged)
    record(judged, tasks=1)
    line = ("train", "--set", "s", "--from", "replay", "--grader", "python:judge:grade")
    async with serving(policy()[1]) as endpoint:
        _, out, err = await run(judged, *line, endpoint=endpoint)
    assert ("hm" in out, "hm" in err) == (False, True)


async def test_replay_without_a_right_answer_for_the_grader_says_how_to_send_one(judged: Path) -> None:
    record(judged, tasks=2)
    async with serving(optimizer) as endpoint:
        code, _, err = await run(
            judged, "train", "--set", "s", "--from", "replay", "--grader", "exact", endpoint=endpoint
        )
    assert (code, len(err.splitlines())) == (1, 1)
    assert "2 logged tasks have no right answer" in err
    assert "`reference` with a label" in err


async def test_an_agent_learns_by_way_of_a_running_proxy(judged: Path, start_proxy: StartProxy) -> None:
    record(judged, tasks=2)
    asked, reply = policy()
    async with serving(reply) as endpoint:
        proxy = await asyncio.to_thread(start_proxy, endpoint.url, store={"url": url(judged)})
        configure(judged, proxy=proxy.base_url, runner="python:mine:ask", grader="python:judge:grade", concurrency=1)
        learned = await result(judged, "train", "--set", "s", "--from", "replay", endpoint=endpoint)
        await asyncio.to_thread(proxy.stop)
    assert (len(asked), learned["version"]) == (4, 1)
    assert learned["usage"]["rollout"]["calls"] == 4
    store = Store.open(url(judged))
    made = [one for one in store.traffic.page(limit=99, set_name="s") if one.arm == "pinned"]
    store.close()
    assert len({one.trajectory for one in made}) == 4


async def test_an_agent_that_is_not_there_is_one_line_that_says_where_was_looked(judged: Path) -> None:
    configure(judged)
    record(judged, tasks=1)
    line = ("train", "--set", "s", "--from", "replay", "--grader", "python:judge:grade", "--runner", "python:no:ask")
    async with serving(optimizer) as endpoint:
        code, _, err = await run(judged, *line, endpoint=endpoint)
    assert code == 2
    assert f"No module named 'no'; looked in {judged}" in err
    assert "Traceback" not in err


async def test_an_agent_without_a_proxy_is_told_to_name_one(judged: Path) -> None:
    configure(judged)
    record(judged, tasks=1)
    line = ("train", "--set", "s", "--from", "replay", "--grader", "python:judge:grade", "--runner", "python:mine:ask")
    async with serving(optimizer) as endpoint:
        code, _, err = await run(judged, *line, endpoint=endpoint)
    assert (code, "set training.proxy" in err, "Traceback" in err) == (2, True, False)


async def test_without_ground_truth_unlabelled_answers_that_differ_are_learned_from(home: Path) -> None:
    record(home, tasks=2)
    async with serving(optimizer) as endpoint:
        learned = await result(home, "train", "--set", "s", "--no-ground-truth", endpoint=endpoint)
        contrasts = [request for request in endpoint.requests if stage(request) == "contrast"]
    assert (len(contrasts), learned["ground_truth"], learned["version"]) == (2, "neither", 1)
    assert "reward=" not in json.dumps([request["messages"][1] for request in contrasts])


async def test_answers_that_are_all_alike_are_refused_without_ground_truth(home: Path) -> None:
    record(home, tasks=2, rewards=(1.0, 1.0))
    async with serving(optimizer) as endpoint:
        code, _, err = await run(home, "train", "--set", "s", "--no-ground-truth", endpoint=endpoint)
    assert (code, "answer differently" in err) == (1, True)
