"""`tfgrpo evaluate` as a user runs it: plans, guards, repeated use of held-out tasks, ablation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tfgrpo.scripted import JSON, Reply, refusal, serving
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import policy, result, run, tasks, url, version
from tfgrpo.library import from_texts
from tfgrpo.store import Store

ASKED = ("evaluate", "--set", "s", "--grader", "exact", "--k", "2")


def guard(home: Path) -> str:
    path = home / "guard.jsonl"
    path.write_text("".join(json.dumps({"question": f"guard {n}", "answer": "no"}) + "\n" for n in range(8)))
    return str(path)


def pruner(request: JSON) -> Reply:
    return "Answer: no" if "HARM" in request["messages"][0]["content"] else "Answer: yes"


async def test_a_plan_says_what_the_effect_needs_and_calls_no_model(home: Path) -> None:
    version(home, "Say yes.")
    async with serving(policy) as endpoint:
        found = await result(home, *ASKED, "--data", tasks(home), "--plan", "--effect", "0.1", endpoint=endpoint)
        asked = len(endpoint.requests)
    assert (found["effect"], found["tasks"], found["tasks_needed"] > 8, asked) == (0.1, 8, True, 0)


async def test_too_few_tasks_are_told_before_anything_is_spent(home: Path) -> None:
    version(home, "Say yes.")
    async with serving(policy) as endpoint:
        code, _, err = await run(home, *ASKED, "--data", tasks(home, 5), "--plan", endpoint=endpoint)
    assert (code, "5 tasks can show nothing" in err) == (0, True)


async def test_the_second_comparison_with_the_same_tasks_is_tested_more_strictly(home: Path) -> None:
    version(home, "Say yes.")
    asked = (*ASKED, "--data", tasks(home))
    async with serving(policy) as endpoint:
        first = await result(home, *asked, endpoint=endpoint)
        same = await result(home, *asked, endpoint=endpoint)
        second = await result(home, *asked, "--seed", "1", endpoint=endpoint)
    assert (first["use"], same["use"], second["use"]) == (1, 1, 2)
    assert (first["level"], second["level"]) == (pytest.approx(0.0304, abs=1e-4), pytest.approx(0.0076, abs=1e-4))
    # Eight tasks are too few at the level of a second use.
    assert (same["verdict"], second["verdict"]) == ("helps", "no effect shown")


async def test_a_harmed_guard_decides_and_the_command_ends_well(home: Path) -> None:
    version(home, "Say yes.")
    async with serving(policy) as endpoint:
        found = await result(home, *ASKED, "--data", tasks(home), "--guard", guard(home), endpoint=endpoint)
    shown = await result(home, "sets", "show", "s@1")
    assert (found["guards"][0]["verdict"], found["verdict"], shown["status"]) == ("harmed", "hurts", "hurts")


async def test_a_guard_that_cannot_be_read_ends_it_before_anything_is_spent(home: Path) -> None:
    version(home, "Say yes.")
    async with serving(policy) as endpoint:
        code, _, err = await run(home, *ASKED, "--data", tasks(home), "--guard", "gone.jsonl", endpoint=endpoint)
        asked = len(endpoint.requests)
    assert (code, "gone.jsonl cannot be read" in err, asked) == (1, True, 0)


async def test_a_version_learned_on_another_model_says_so(home: Path) -> None:
    store = Store.open(url(home))
    store.sets.add_version("s", from_texts(["Say yes."]), status="unproven", policy_model="larger")
    store.close()
    async with serving(policy) as endpoint:
        _, out, err = await run(home, *ASKED, "--data", tasks(home), endpoint=endpoint)
    assert ("learned on larger, and is tested on policy" in out, "learned on larger" in err) == (True, True)


async def test_when_every_rollout_fails_there_is_an_error_and_no_status(home: Path) -> None:
    version(home, "Say yes.")
    async with serving(lambda _: refusal(400, "too long")) as endpoint:
        code, _, err = await run(home, *ASKED, "--data", tasks(home), endpoint=endpoint)
    assert (code, "gave an answer" in err) == (1, True)
    assert (await result(home, "sets", "show", "s@1"))["status"] == "by hand"


async def test_pruning_leaves_out_what_was_shown_to_hurt_and_the_worth_is_shown(home: Path) -> None:
    version(home, "HARM", "Nothing.")
    async with serving(pruner) as endpoint:
        found = await result(home, *ASKED, "--data", tasks(home), "--ablate", "--prune", endpoint=endpoint)
    before, after = await result(home, "sets", "show", "s@1"), await result(home, "sets", "show", "s@2")
    assert (found["pruned"], before["worth"]["e1"]["verdict"]) == (2, "hurts")
    assert ([one["text"] for one in after["experiences"]], after["parent"], after["status"]) == (
        ["Nothing."],
        1,
        "unproven",
    )


async def test_nothing_is_pruned_without_proof(home: Path) -> None:
    version(home, "One.", "Two.")
    async with serving(pruner) as endpoint:
        found = await result(home, *ASKED, "--data", tasks(home), "--ablate", "--prune", endpoint=endpoint)
    assert found["pruned"] is None


@pytest.mark.parametrize("extra", [("--prune",), ("--pass-at", "3"), ("--ablate", "--plan")])
async def test_what_does_not_go_together_is_refused(home: Path, extra: tuple[str, ...]) -> None:
    version(home, "Say yes.")
    code, _, err = await run(home, *ASKED, "--data", tasks(home), *extra)
    assert (code, extra[0] in err) == (2, True)
