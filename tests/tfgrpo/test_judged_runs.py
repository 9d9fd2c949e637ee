"""Runs that a model judges, by the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tfgrpo.scripted import JSON, Reply, serving, stage
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import result, tasks
from tests.tfgrpo.test_trainer import optimizer

CRITIQUE = "It should have said forty-two."
SETTINGS = """
training:
  epochs: 1
  ground_truth: {mode}
  grader: {{name: judge, rubric: "Full marks for yes."}}
"""


async def asked(home: Path, mode: str) -> tuple[JSON, list[JSON]]:
    """Train on what a judge says; return the run's result and what the optimizer was asked in learning."""
    turn = 0

    def reply(request: JSON) -> Reply:
        nonlocal turn
        turn += 1
        if request["model"] == "policy":
            return "Answer: yes" if turn % 2 else "Answer: no"
        if "Answer: yes" in request["messages"][1]["content"] and "attempt" in request["messages"][1]["content"]:
            return json.dumps({"critique": CRITIQUE, "score": 1.0})
        judging = "rubric" in request["messages"][1]["content"]
        return json.dumps({"critique": CRITIQUE, "score": 0.0}) if judging else optimizer(request)

    (home / "config.yaml").write_text(SETTINGS.format(mode=mode))
    async with serving(reply) as endpoint:
        told = await result(home, "train", "--set", "s", "--from", "dataset", "--data", tasks(home), endpoint=endpoint)
    return told, [
        one for one in endpoint.requests if one["model"] != "policy" and stage(one) in ("contrast", "propose")
    ]


@pytest.mark.parametrize(("mode", "shown"), [("reward and reference", True), ("reward only", False)])
async def test_what_a_judge_says_reaches_the_optimizer_only_with_the_reference(
    home: Path, mode: str, *, shown: bool
) -> None:
    told, learning = await asked(home, mode)
    assert (told["usage"]["judge"]["calls"] > 0, told["contrasting"] > 0) == (True, True)
    assert (CRITIQUE in json.dumps(learning)) is shown
