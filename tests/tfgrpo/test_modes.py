from __future__ import annotations

import json

import pytest

from tests.tfgrpo.scripted import Endpoint, sections, serving, stage
from tests.tfgrpo.test_trainer import Silent, optimizer
from tfgrpo.library import Limits
from tfgrpo.llm import Llm
from tfgrpo.modes import Mode, differs, shown
from tfgrpo.optimizer import Optimizer
from tfgrpo.trainer import Learned, Trainer
from tfgrpo.types import Group, Library, Message, Rollout, Task
from tfgrpo.usage import Ledger

SECRET = "forty-two"
LONG = "so I went on, " * 200


def group(*answers: tuple[str, float]) -> Group:
    task = Task("g", (Message("user", "task 1"),), SECRET)
    rollouts = [
        Rollout(f"t{place}", (Message("assistant", text),), reward, comments=(f"it should say {SECRET}",))
        for place, (text, reward) in enumerate(answers)
    ]
    return Group("g", task, "m", "s", 0, tuple(rollouts))


async def learned(endpoint: Endpoint, mode: Mode, one: Group) -> Learned:
    async with Llm(endpoint.model(), ledger=Ledger()) as llm:
        trainer = Trainer(Optimizer(llm, "", None, 0, 32), Limits(50, 32), Silent(), mode=mode)
        return await trainer.learn([one], Library())


async def prompts(mode: Mode) -> dict[str, str]:
    """What the optimizer was asked, by stage."""
    async with serving(optimizer) as endpoint:
        await learned(endpoint, mode, group((f"{LONG} yes", 1.0), (f"{LONG} no", 0.0)))
    return {stage(request): sections(request) for request in endpoint.requests}


async def test_reward_and_reference_are_shown() -> None:
    asked = await prompts("reward and reference")
    for name in ("summarise", "contrast"):
        assert SECRET in asked[name]
        assert 'reward="' in asked[name]


async def test_with_the_reward_only_nothing_that_may_quote_the_reference_reaches_the_optimizer() -> None:
    asked = await prompts("reward only")
    assert SECRET not in json.dumps(asked)
    assert 'reward="' in asked["contrast"]


async def test_with_neither_no_reward_reaches_the_optimizer() -> None:
    asked = await prompts("neither")
    assert SECRET not in json.dumps(asked)
    assert "reward=" not in json.dumps(asked)
    assert set(asked) == {"summarise", "contrast", "propose", "consolidate"}


@pytest.mark.parametrize(
    ("mode", "answers", "contrasting"),
    [
        ("neither", (("yes", 1.0), ("no", 1.0)), 1),
        ("neither", (("yes", 1.0), (" yes\n", 0.0)), 0),
        ("reward only", (("yes", 1.0), ("no", 1.0)), 0),
        ("reward only", (("yes", 1.0), ("yes", 0.0)), 1),
    ],
)
async def test_what_is_contrasted_is_what_the_mode_can_see(
    mode: Mode, answers: tuple[tuple[str, float], ...], contrasting: int
) -> None:
    async with serving(optimizer) as endpoint:
        result = await learned(endpoint, mode, group(*answers))
    assert sum(len(step.telling) for step in result.steps) == contrasting


def test_the_group_that_training_counts_with_keeps_its_rewards() -> None:
    one = group(("yes", 1.0))
    assert shown(one, "neither").rollouts[0].reward is None
    assert one.rollouts[0].reward == 1.0


def test_a_group_of_one_does_not_differ() -> None:
    assert not differs(group(("yes", 1.0)))
