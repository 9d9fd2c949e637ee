"""The bounds of the statistical tests are four standard errors and more; the seeds are fixed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.tfgrpo.simulation.loop import luck
from tfgrpo.simulation import policy
from tfgrpo.simulation.language import lesson
from tfgrpo.simulation.parsing import parse
from tfgrpo.simulation.tasks import grade
from tfgrpo.simulation.world import World
from tfgrpo.types import Message

SEEDS = range(3)
N = 900
MARGIN = 4 * (2 * 0.25 / N) ** 0.5
"""Four standard errors of the difference of two success rates over N tasks."""


def success(world: World, system: Callable[[random.Random], str], *, ordinary: bool = False) -> float:
    rng = luck(11)
    rows = world.tasks(N, split="train")
    if ordinary:
        rows = [row for row in rows if (task := world.find(row["question"])) and task.fate == "ordinary"]
    right = 0.0
    for row in rows:
        messages = [Message("system", system(rng)), Message("user", row["question"])]
        right += grade(policy.answer(world, messages, rng), row["answer"])
    return right / len(rows)


def nothing(_rng: random.Random) -> str:
    return ""


def rules_of(world: World, sign: int = 1) -> Callable[[random.Random], str]:
    return lambda rng: "\n".join(lesson(rule.feature, sign * rule.polarity, rng) for rule in world.rules)


@pytest.fixture(params=SEEDS, scope="module")
def world(request: pytest.FixtureRequest) -> World:
    return World.draw(request.param)


def test_base_success_on_ordinary_tasks_is_between_20_and_80_percent(world: World) -> None:
    assert 0.2 <= success(world, nothing, ordinary=True) <= 0.8


def test_base_success_is_what_the_world_expects(world: World) -> None:
    assert abs(success(world, nothing, ordinary=True) - world.expected_success()) < MARGIN


def test_the_true_rules_in_any_wording_raise_success_a_lot(world: World) -> None:
    assert success(world, rules_of(world)) > success(world, nothing) + 0.15


def test_the_opposite_rules_lower_success(world: World) -> None:
    assert success(world, rules_of(world, -1)) < success(world, nothing) - 0.08


def test_opposites_cancel(world: World) -> None:
    def both(rng: random.Random) -> str:
        return "\n".join((rules_of(world)(rng), rules_of(world, -1)(rng)))

    assert abs(success(world, both) - success(world, nothing)) < MARGIN


def test_following_is_never_certain(world: World) -> None:
    assert success(world, rules_of(world), ordinary=True) < world.dials.best


def test_a_long_text_weakens_what_it_says(world: World) -> None:
    padding = "Some words that say nothing of any use to anybody here. " * 350
    padded = rules_of(world)
    assert success(world, lambda rng: padded(rng) + padding) < success(world, rules_of(world)) - 0.05


def test_many_irrelevant_lessons_weaken_the_others(world: World) -> None:
    def crowded(rng: random.Random) -> str:
        others = [lesson(rng.randrange(200), rng.choice((1, -1)), rng) for _ in range(80)]
        return "\n".join((rules_of(world)(rng), *others))

    assert success(world, crowded) < success(world, rules_of(world))


def test_a_lesson_is_followed_in_a_user_message_too(world: World) -> None:
    rule = world.rules[0]
    messages = [Message("user", lesson(rule.feature, 1, luck(0)))]
    assert policy.guidance(messages).wanted[rule.feature] > 0


def test_an_answer_of_its_own_is_not_followed() -> None:
    assert not policy.guidance([Message("assistant", "Always restate the units.")]).wanted


def test_an_answer_shows_what_was_done_and_ends_with_the_answer_line(world: World) -> None:
    (row,) = world.tasks(1, split="train")
    text = policy.answer(world, [Message("user", row["question"])], luck(1))
    natural = {habit.feature for habit in world.families[0].habits}
    assert {one.feature for one in parse(text)} <= natural
    assert all(one.reported for one in parse(text))
    assert text.splitlines()[-1].startswith("Answer: ")


def test_a_fixed_task_ends_the_same_whatever_is_said(world: World) -> None:
    for fate, reward in (("always right", 1.0), ("always wrong", 0.0)):
        rows = world.tasks(600, split="train")
        row = next(row for row in rows if (task := world.find(row["question"])) and task.fate == fate)
        rng = luck(2)
        for system in (nothing, rules_of(world), rules_of(world, -1)):
            messages = [Message("system", system(rng)), Message("user", row["question"])]
            answers = [policy.answer(world, messages, rng) for _ in range(20)]
            assert {grade(answer, row["answer"]) for answer in answers} == {reward}


def test_a_message_that_names_no_task_gets_no_answer_line(world: World) -> None:
    assert "Answer:" not in policy.answer(world, [Message("user", "Hello!")], luck(1))
