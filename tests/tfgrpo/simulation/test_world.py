from __future__ import annotations

import pytest

from tfgrpo.errors import UsageError
from tfgrpo.simulation.tasks import grade
from tfgrpo.simulation.world import SPLITS, World

WORLDS = [World.draw(seed) for seed in range(40)]


def test_a_world_is_a_function_of_its_seed() -> None:
    assert World.draw(7) == World.draw(7)
    assert World.draw(7) != World.draw(8)


def test_a_world_has_5_to_8_rules_of_different_features() -> None:
    for world in WORLDS:
        assert 5 <= len({rule.feature for rule in world.rules}) == len(world.rules) <= 8


def test_families_need_different_subsets_of_1_to_3_rules_that_cover_all() -> None:
    for world in WORLDS:
        needs = [frozenset(family.needs) for family in world.families]
        assert len(set(needs)) == len(needs)
        assert all(1 <= len(needed) <= 3 for needed in needs)
        assert frozenset().union(*needs) == set(world.rules)


def test_both_polarities_occur_about_equally_often() -> None:
    rules = [rule for world in WORLDS for rule in world.rules]
    positive = sum(rule.polarity > 0 for rule in rules)
    assert abs(positive - len(rules) / 2) < 4 * (len(rules) / 4) ** 0.5


def test_every_family_has_ten_or_more_natural_behaviours_that_change_nothing() -> None:
    for family in (family for world in WORLDS for family in world.families):
        needed = {rule.feature for rule in family.needs}
        assert len([habit for habit in family.habits if habit.feature not in needed]) >= 10
        assert needed <= {habit.feature for habit in family.habits}


def test_expected_success_is_between_20_and_80_percent_in_a_world_and_its_mirror() -> None:
    for world in WORLDS:
        assert 0.2 <= world.expected_success() <= 0.8
        assert 0.2 <= world.flipped().expected_success() <= 0.8


def test_flipping_turns_every_polarity_and_keeps_the_tasks() -> None:
    world = WORLDS[0]
    mirror = world.flipped()
    assert [(one.feature, -one.polarity) for one in world.rules] == [(r.feature, r.polarity) for r in mirror.rules]
    assert world.tasks(50, split="train") == mirror.tasks(50, split="train")
    assert mirror.flipped() == world


def test_splits_share_no_question() -> None:
    questions = [row["question"] for split in SPLITS for row in WORLDS[0].tasks(500, split=split)]
    assert len(set(questions)) == len(questions)


def test_an_unknown_split_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="'dev'"):
        WORLDS[0].tasks(1, split="dev")


def test_a_task_is_found_by_its_question_alone() -> None:
    world = WORLDS[0]
    for row in world.tasks(60, split="train"):
        task = world.find(row["question"])
        assert task is not None
        assert (task.question, task.answer, task.family.theme.name) == (row["question"], row["answer"], row["family"])


def test_a_text_without_a_reference_of_this_world_names_no_task() -> None:
    assert WORLDS[0].find("What is the capital of France? See ZZ-10000.") is None


def test_some_tasks_are_always_right_and_some_always_wrong() -> None:
    world = WORLDS[0]
    fates = [world.task(world.families[0], number).fate for number in range(10_000, 11_000)]
    assert 40 < fates.count("always right") < 130
    assert 40 < fates.count("always wrong") < 130


@pytest.mark.parametrize(
    ("answer", "reward"),
    [
        ("I did it.\nAnswer: 4318", 1.0),
        ("Answer: 1\nanswer:  4318  ", 1.0),
        ("Answer: 4318\nAnswer: 1", 0.0),
        ("It is 4318.", 0.0),
        ("", 0.0),
    ],
)
def test_the_last_answer_line_is_what_counts(answer: str, reward: float) -> None:
    assert grade(answer, "4318") == reward


def test_nothing_is_right_without_a_reference() -> None:
    assert grade("Answer: ", None) == 0.0


def test_an_idle_world_needs_nothing_and_succeeds_as_often_as_the_world_it_was() -> None:
    for world in WORLDS[:10]:
        idle = world.idle()
        assert not idle.rules
        assert not [family for family in idle.families if family.needs]
        assert idle.expected_success() == pytest.approx(world.expected_success())
        assert idle.tasks(5, split="test") == world.tasks(5, split="test")
