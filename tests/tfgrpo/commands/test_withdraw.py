from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tfgrpo.scripted import JSON, Reply, serving
from tests.tfgrpo.store.examples import assignment, exchange
from tests.tfgrpo.test_main import ONE_GROUP, record, result, run, tasks, url
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_trainer import optimizer
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Experience, Library

ENTRIES = (Experience("e1", "Check the sign.", ("h@0",)), Experience("e2", "Prefer the dear option.", ("g@0",)))


@pytest.fixture
def filled(home: Path) -> Path:
    store = Store.open(url(home), migrate=True)
    store.traffic.add(Batch(((exchange(1), Bodies(b"", b"", "", "", "")),), (assignment(1),)))
    store.sets.add_version("math", Library(ENTRIES, 3), status="by hand")
    store.sets.deploy("math", live=1, reason="", actor="me")
    store.close()
    return home


async def test_a_dry_run_says_what_would_change_and_changes_nothing(filled: Path) -> None:
    code, out, _ = await run(filled, "withdraw", "--exchange", "ex-1", "--dry-run")
    assert code == 0
    assert "math: would lose [e2] Prefer the dear option." in out
    assert "a new version of 1 entries would be made from 1; the live version rests on it: add --deploy" in out
    assert "teaches no more" not in out
    assert "live 1" in (await run(filled, "sets", "list"))[1]


async def test_one_command_replaces_the_live_version(filled: Path) -> None:
    code, out, _ = await run(filled, "withdraw", "--app", "default", "--deploy", "--reason", "poison", "--by", "ann")
    assert (code, "math: live 2 (revision 2), from the next request on" in out) == (0, True)
    assert "the app default teaches no more" in out
    history = (await run(filled, "sets", "history", "math"))[1]
    assert "withdraw live 2 (revision 2); entries e2 by ann (tfgrpo withdraw): app default withdrawn: poison" in history
    assert (await run(filled, "sets", "history", "math", "--verify"))[0] == 0


async def test_without_deploy_it_says_what_to_run(filled: Path) -> None:
    _, out, _ = await run(filled, "withdraw", "--source", "g")
    assert "version 2, of 1 entries, is stored, but the live version rests on it" in out
    assert "run the same with --deploy" in out
    code, _, err = await run(filled, "sets", "deploy", "math@1")
    assert (code, "(entries e2)" in err) == (1, True)


async def test_it_is_told_as_json(filled: Path) -> None:
    _, out, _ = await run(filled, "withdraw", "--exchange", "ex-1", "--deploy", "--json")
    found = json.loads(out)
    assert found["withdrawn"] == {"kind": "exchange", "name": "ex-1"}
    (one,) = found["sets"]
    assert (one["base"], one["version"], one["revision"], one["versions"]) == (1, 2, 2, [1])
    assert one["gone"] == [{"id": "e2", "text": "Prefer the dear option."}]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--exchange", "ex-9"), 1),
        (("--app", "nobody"), 1),
        (("--source", "nobody"), 1),
        (("--app", ""), 2),
    ],
)
async def test_what_is_unknown_is_one_line(filled: Path, arguments: tuple[str, ...], code: int) -> None:
    found, out, err = await run(filled, "withdraw", *arguments)
    assert (found, out, err.count("\n")) == (code, "", 1)


async def test_a_run_that_is_under_way_is_named(filled: Path) -> None:
    store = Store.open(url(filled))
    store.runs.acquire("training", "run-7", 60)
    store.close()
    assert "training run run-7 is under way" in (await run(filled, "withdraw", "--source", "g"))[2]


@pytest.mark.parametrize("form", ["json", "markdown", "reference", "agent-yaml"])
async def test_an_export_of_a_version_leaves_out_what_was_withdrawn_of_it_and_says_so(filled: Path, form: str) -> None:
    await run(filled, "withdraw", "--source", "g")
    code, out, err = await run(filled, "sets", "export", "math@1", "--format", form)
    assert (code, "Check the sign." in out, "Prefer the dear option." in out) == (0, True, False)
    assert "math@1: left out, for they were withdrawn: entries e2" in err


async def test_an_evaluation_tests_a_version_without_what_was_withdrawn_of_it_and_says_so(filled: Path) -> None:
    asked: list[str] = []

    def policy(request: JSON) -> Reply:
        asked.append(json.dumps(request["messages"]))
        return "Answer: yes"

    await run(filled, "withdraw", "--source", "g")
    words = ("evaluate", "--set", "math@1", "--data", tasks(filled), "--grader", "exact", "--k", "1")
    async with serving(policy) as endpoint:
        code, out, err = await run(filled, *words, endpoint=endpoint)
        found = await result(filled, *words, endpoint=endpoint)
    left_out = "Left out, for they were withdrawn: entries e2 of math@1."
    assert (code, left_out in out, left_out in err) == (0, True, True)
    assert found["withdrawn"] == {"math@1": ["e2"]}
    assert any("Check the sign." in one for one in asked)
    assert [one for one in asked if "Prefer the dear option." in one] == []


async def test_training_data_rests_on_nothing_that_was_withdrawn(home: Path) -> None:
    record(home, tasks=2)
    await run(home, "withdraw", "--exchange", "x-t1-0")
    code, out, err = await run(home, "traffic", "export", "--set", "s", "--min-reward", "0")
    assert (code, "task 0" in out, "did this" in out.split("task 1")[-1]) == (0, True, False)
    assert "left out, for they were withdrawn: 1 trajectories" in err
    code, out, err = await run(home, "traffic", "export", "--set", "s", "--format", "tfgrpo")
    assert (code, "t1-1" in out, "t1-0" in out) == (0, True, False)
    assert "left out, for they were withdrawn: 1 trajectories" in err


@pytest.mark.parametrize("form", ["openai", "tfgrpo"])
async def test_an_export_of_traffic_says_nothing_of_withdrawals_of_others(home: Path, form: str) -> None:
    record(home, tasks=1)
    store = Store.open(url(home))
    store.traffic.add(Batch(((exchange(1), Bodies()),), (assignment(1),)))
    store.close()
    await run(home, "withdraw", "--exchange", "ex-1")
    code, _, err = await run(home, "traffic", "export", "--set", "s", "--format", form)
    assert (code, "withdrawn" in err) == (0, False)


async def test_a_run_starts_from_the_live_version_without_what_was_withdrawn_of_it(home: Path) -> None:
    (home / "config.yaml").write_text(json.dumps({"safety": ONE_GROUP}))
    store = Store.open(url(home))
    store.sets.add_version("s", Library(ENTRIES, 3), status="by hand")
    store.sets.deploy("s", live=1, reason="", actor="me")
    store.close()
    record(home, tasks=2)
    await run(home, "withdraw", "--source", "g")
    async with serving(optimizer) as endpoint:
        made = await result(home, "train", "--set", "s", endpoint=endpoint)
    shown = await result(home, "sets", "show", f"s@{made['version']}")
    texts = [one["text"] for one in shown["experiences"]]
    assert ("Check the sign." in texts, "Prefer the dear option." in texts) == (True, False)
    assert (await run(home, "sets", "deploy", f"s@{made['version']}"))[0] == 0
