"""Whole loops, by hand: something is learned when rewards tell something, and nothing when they do not."""

from __future__ import annotations

from collections import Counter
from functools import cache

from tests.tfgrpo.simulation.loop import ask_json, contrast_prompt, learn, luck, rollout, shuffled, success
from tfgrpo import library as libraries
from tfgrpo.simulation.editing import key
from tfgrpo.simulation.provider import Provider
from tfgrpo.simulation.world import World

SEEDS = range(5)


@cache
def votes(seed: int, *, flipped: bool = False, permuted: bool = False) -> Counter[object]:
    """What the lessons of 100 groups of five say, counted."""
    world = World.draw(seed)
    provider = Provider(seed, world=world.flipped() if flipped else world)
    groups = [[rollout(provider, row) for _ in range(5)] for row in world.tasks(100, split="train")]
    if permuted:
        groups = shuffled(groups, luck(seed))
    telling = [group for group in groups if len({reward for _, reward in group}) > 1]
    lessons = [ask_json(provider, "contrast", contrast_prompt(group))["lessons"] for group in telling]
    return Counter(key(text) for texts in lessons for text in texts)


def for_and_against(*, flipped: bool = False, permuted: bool = False) -> tuple[int, int]:
    """How many lessons about features that count state the (unflipped) rules, and how many state the opposite."""
    right = wrong = 0
    for seed in SEEDS:
        counted = votes(seed, flipped=flipped, permuted=permuted)
        for rule in World.draw(seed).rules:
            right += counted[rule.feature, rule.polarity]
            wrong += counted[rule.feature, -rule.polarity]
    return right, wrong


def majority(*, permuted: bool) -> float:
    """The share of rules whose majority of lessons is right; a tie counts half."""
    points = 0.0
    rules = [(seed, rule) for seed in SEEDS for rule in World.draw(seed).rules]
    for seed, rule in rules:
        counted = votes(seed, permuted=permuted)
        right, wrong = counted[rule.feature, rule.polarity], counted[rule.feature, -rule.polarity]
        points += 0.5 + (right > wrong) / 2 - (right < wrong) / 2
    return points / len(rules)


def test_lessons_state_the_rules_far_more_often_than_their_opposites() -> None:
    right, wrong = for_and_against()
    assert right > 5 * wrong


def test_the_majority_over_groups_recovers_nearly_every_polarity() -> None:
    assert majority(permuted=False) > 0.85


def test_with_permuted_rewards_right_and_wrong_lessons_are_equally_frequent() -> None:
    right, wrong = for_and_against(permuted=True)
    assert right + wrong > 50
    assert abs(right - wrong) < 4 * (right + wrong) ** 0.5


def test_with_permuted_rewards_the_majority_recovers_polarities_at_chance() -> None:
    rules = sum(len(World.draw(seed).rules) for seed in SEEDS)
    assert abs(majority(permuted=True) - 0.5) < 4 * (0.25 / rules) ** 0.5


def test_with_the_polarities_flipped_the_lessons_flip() -> None:
    right, wrong = for_and_against(flipped=True)
    assert wrong > 5 * right


def gains(*, permuted: bool) -> list[float]:
    """How much one pass over 60 tasks of four rollouts each changes success on held-out tasks, for each seed."""
    found = []
    for seed in SEEDS:
        provider, dealt = Provider(seed), luck(seed)
        rows = provider.world.tasks(60, split="train")
        groups = [[rollout(provider, row) for _ in range(4)] for row in rows]
        learned = learn(provider, shuffled(groups, dealt) if permuted else groups)
        held_out = provider.world.tasks(400, split="held-out")
        block = libraries.render(learned, name="tour", version=1)
        found.append(success(provider, held_out, block) - success(provider, held_out))
    return found


def test_one_pass_over_60_tasks_makes_the_policy_better() -> None:
    found = gains(permuted=False)
    assert min(found) > 0.05
    assert sum(found) / len(found) > 0.15


def test_permuted_rewards_do_not_make_the_policy_better() -> None:
    found = gains(permuted=True)
    assert sum(found) / len(found) < 0.08
