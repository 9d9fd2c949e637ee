"""Training on a data set by the command line: splits, the gate, and what a run tells."""

from __future__ import annotations

import json
import re
from pathlib import Path
from zlib import crc32

from tests.tfgrpo.scripted import JSON, Reply, serving
from tests.tfgrpo.test_main import home, record, result, run, tasks, url
from tests.tfgrpo.test_trainer import optimizer
from tfgrpo.datasets import parse
from tfgrpo.library import from_texts
from tfgrpo.splits import split
from tfgrpo.store import Store

__all__ = ["home"]


def practising(home: Path, *, validation: float = 0.0, **gate: float) -> None:
    """Few rollouts, so that a test is quick."""
    settings = {"epochs": 1, "group_size": 2, "harm_confidence": None, "gate": {"samples": 1, **gate}}
    settings |= {"splits": {"validation": validation}}
    (home / "config.yaml").write_text(json.dumps({"training": settings}))


def learner(request: JSON, *, helps: bool = True) -> Reply:
    """Right every other time, and where lessons help whenever there is one."""
    if request["model"] != "policy":
        return optimizer(request)
    taught = helps and "going" in request["messages"][0]["content"]
    return "Answer: yes" if taught or crc32(json.dumps(request).encode()) % 2 else "Answer: no"


DATASET = ("train", "--set", "s", "--from", "dataset", "--grader", "exact", "--deploy", "--data")


async def test_what_a_data_set_taught_is_deployed_when_the_gate_says_that_it_helps(tmp_path: Path) -> None:
    practising(tmp_path)
    async with serving(learner) as endpoint:
        made = await result(tmp_path, *DATASET, tasks(tmp_path, 60), endpoint=endpoint)
    assert (made["status"], made["gate"]["verdict"], made["deployed"]) == ("helps", "helps", True)
    assert made["gate"]["n"] == made["splits"]["held_out"] == 60 - made["splits"]["train"]
    assert (await result(tmp_path, "sets", "list"))[0]["live"] == 1


async def test_a_version_that_is_learned_again_keeps_one_row_and_what_was_shown(tmp_path: Path) -> None:
    practising(tmp_path)
    asked = [one for one in DATASET if one != "--deploy"]
    async with serving(learner) as endpoint:
        made = [await result(tmp_path, *asked, tasks(tmp_path, 60), endpoint=endpoint) for _ in range(2)]
    assert [(one["version"], one["status"]) for one in made] == [(1, "helps")] * 2
    assert "against the parent on held-out tasks" in made[1]["note"]


async def test_what_shows_no_effect_is_stored_with_that_word_and_not_deployed(tmp_path: Path) -> None:
    practising(tmp_path)
    async with serving(lambda request: learner(request, helps=False)) as endpoint:
        code, _, err = await run(tmp_path, *DATASET, tasks(tmp_path, 60), endpoint=endpoint)
    shown = await result(tmp_path, "sets", "show", "s@1")
    assert (code, "not deployed: the gate came to" in err, shown["status"]) == (0, True, "no effect shown")
    assert (await result(tmp_path, "sets", "list"))[0]["live"] is None


async def test_what_harms_the_tasks_of_a_guard_hurts_and_is_not_deployed(tmp_path: Path) -> None:
    practising(tmp_path)
    guard = tmp_path / "guard.jsonl"
    guard.write_text("".join(json.dumps({"question": f"guard {n}", "answer": "no"}) + "\n" for n in range(40)))
    async with serving(learner) as endpoint:
        made = await result(tmp_path, *DATASET, tasks(tmp_path, 60), "--guard", str(guard), endpoint=endpoint)
    assert (made["gate"]["guards"][0]["verdict"], made["status"], made["deployed"]) == ("harmed", "hurts", False)


async def test_an_effect_smaller_than_wanted_does_not_help(tmp_path: Path) -> None:
    practising(tmp_path, minimum_effect=0.99)
    async with serving(learner) as endpoint:
        made = await result(tmp_path, *DATASET, tasks(tmp_path, 60), endpoint=endpoint)
    assert (made["gate"]["interval"][0] > 0, made["status"], made["deployed"]) == (True, "no effect shown", False)


async def test_the_optimizer_sees_no_task_that_is_held_out_or_for_validation(tmp_path: Path) -> None:
    practising(tmp_path, validation=0.15)
    async with serving(learner) as endpoint:
        made = await result(tmp_path, *DATASET, tasks(tmp_path, 120), endpoint=endpoint)
    told = "\n".join(json.dumps(one["messages"]) for one in endpoint.requests if one["model"] == "optimizer")
    asked = "\n".join(json.dumps(one["messages"]) for one in endpoint.requests if one["model"] == "policy")
    seen, posed = (set(re.findall(r"task (\d+)", text)) for text in (told, asked))
    lines = [json.dumps({"question": f"task {number}", "answer": "yes"}) for number in range(120)]
    parsed = parse(lines, name="d", need_reference=True).tasks
    splits = split(parsed, held_out=0.3, validation=0.15)
    kept_back = {one.question.removeprefix("task ") for one in (*splits.validation, *splits.held_out)}
    assert (made["splits"]["validation"] > 0, len(seen) > 20, seen & kept_back) == (True, True, set())
    assert {one.question.removeprefix("task ") for one in splits.held_out} <= posed


async def test_the_recipe_of_the_paper_holds_nothing_out_and_has_no_gate(tmp_path: Path) -> None:
    practising(tmp_path)
    async with serving(learner) as endpoint:
        asked = (*DATASET, tasks(tmp_path, 20), "--recipe", "paper")
        made = await result(tmp_path, *asked, endpoint=endpoint)
    assert (made["splits"]["held_out"], made["gate"], made["status"]) == (0, None, "unproven")


async def test_a_library_that_outgrew_its_budget_is_kept_and_deployed_by_nobody(tmp_path: Path) -> None:
    settings = {"epochs": 1, "group_size": 2, "batch_size": 5, "max_entries": 1}
    (tmp_path / "config.yaml").write_text(json.dumps({"training": settings}))
    async with serving(learner) as endpoint:
        asked = (*DATASET, tasks(tmp_path, 20), "--recipe", "paper")
        trained, out, err = await run(tmp_path, *asked, endpoint=endpoint)
    deployed, _, refused = await run(tmp_path, "sets", "deploy", "s@1")
    assert (trained, deployed, (await result(tmp_path, "sets", "list"))[0]["live"]) == (0, 2, None), out
    assert "not deployed" in err
    assert all("training.selection: lexical" in said for said in (err, refused))


async def test_a_run_tells_each_step_with_its_numbers(tmp_path: Path) -> None:
    practising(tmp_path)
    async with serving(learner) as endpoint:
        made = await result(tmp_path, *DATASET, tasks(tmp_path, 20), endpoint=endpoint)
    (step,) = made["steps"]
    assert (step["step"], step["stage"], step["groups"], step["library_before"]) == (1, "learn", made["groups"], [])
    assert (0 < step["reward"] < 1, step["tokens"] > 0, len(step["applied"])) == (True, True, len(made["applied"]))
    assert [one["text"] for one in made["library_after"]] == [one["text"] for one in made["experiences"]]


async def test_deploying_for_another_model_than_a_version_was_learned_for_warns(home: Path) -> None:
    record(home, tasks=1)
    store = Store.open(url(home))
    for model in ("other", "m"):
        store.sets.add_version("s", from_texts([f"For {model}."]), status="unproven", policy_model=model)
    store.close()
    said = [(await run(home, "sets", "deploy", f"s@{number}"))[2] for number in (1, 2)]
    assert ("was learned for other, and the set's traffic goes to m" in said[0], said[1]) == (True, "")
