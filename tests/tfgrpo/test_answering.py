"""Runs whose model gives no answer, as a user meets them."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.tfgrpo.scripted import JSON, Reply, completion, refusal, serving
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import run, tasks
from tests.tfgrpo.test_trainer import optimizer


async def trained(home: Path, *said: Reply | None) -> tuple[int, str, str]:
    """Train on eight tasks; rollouts get what is `said` in turn, None being a refusal."""
    turns = itertools.cycle(said)

    def reply(request: JSON) -> Reply:
        if request["model"] != "policy":
            return optimizer(request)
        return next(turns) or refusal(400, "the prompt is too long")

    arguments = ("train", "--set", "s", "--from", "dataset", "--data", tasks(home), "--grader", "exact")
    async with serving(reply) as endpoint:
        return await run(home, *arguments, endpoint=endpoint)


async def test_a_model_that_refuses_every_rollout_stops_the_run_with_its_reason(home: Path) -> None:
    code, _, err = await trained(home, None)
    assert (code, "rollouts gave an answer; the first error" in err, "the prompt is too long" in err) == (1, True, True)


async def test_rollouts_without_an_answer_are_counted_and_said(home: Path) -> None:
    _, _, err = await trained(home, "Answer: yes", None)
    assert "rollouts gave no answer and count as 0; the first error" in err


async def test_empty_answers_are_counted_and_said(home: Path) -> None:
    _, _, err = await trained(home, "Answer: yes", completion(""))
    assert "were empty\n" in err


async def test_when_no_group_contrasts_it_is_said_with_the_mean_reward(home: Path) -> None:
    code, out, _ = await trained(home, "Answer: no")
    assert (code, "no group contrasts" in out, "mean reward is 0.000, so the tasks are too hard" in out) == (
        0,
        True,
        True,
    )
