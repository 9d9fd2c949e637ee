"""The learning comparison: labels as the settings say, learners within their budget, targets judged by the numbers."""

from __future__ import annotations

from typing import Any

from benchmarks.learning import learners
from benchmarks.learning.__main__ import report
from benchmarks.learning.models import SimulatedRunner, provider_of, tasks_of, worth
from benchmarks.learning.settings import SETTINGS, Setting, clean, hostile, noisy
from benchmarks.learning.summary import finished, found, targets
from tfgrpo.configuration import Gate, Splits
from tfgrpo.rollouts import Prior, Sampling
from tfgrpo.simulation.parsing import parse
from tfgrpo.types import Library, Task

CLEAN = SETTINGS[0]
NAMES = ("none", "guessed", "paper 25", "paper 50", "paper 100", "ours", "oracle")


def truth(_task: Task, _luck: str, reward: float) -> float:
    return reward


def runner(setting: Setting, seed: int = 5) -> SimulatedRunner:
    return SimulatedRunner(provider_of(setting, seed), truth)


def test_one_label_in_five_is_wrong_and_none_where_labels_are_clean() -> None:
    questions = [str(number) for number in range(2000)]
    assert 0.17 < sum(noisy(1, question, "x", 1.0) == 0 for question in questions) / 2000 < 0.23
    assert all(clean(1, question, "x", 1.0) == 1 for question in questions)


def test_an_adversary_turns_every_label_of_one_task_in_twenty() -> None:
    turned = [{hostile(1, str(number), luck, 1.0) for luck in "abc"} for number in range(2000)]
    assert {len(labels) for labels in turned} == {1}
    assert 0.03 < sum(labels == {0.0} for labels in turned) / 2000 < 0.07


async def test_the_oracle_says_each_rule_once_and_is_worth_more_than_nothing() -> None:
    measuring = runner(CLEAN)
    world = measuring.provider.world
    library = learners.oracle(world).library
    said = [(one.feature, one.polarity) for entry in library.experiences for one in parse(entry.text)]
    assert said == [(rule.feature, rule.polarity) for rule in world.rules]
    fresh = tasks_of(measuring.provider, 60, "test")
    none = await worth(measuring, fresh, Library(), samples=2)
    assert await worth(measuring, fresh, library, samples=2) > none + 0.1


async def test_where_there_is_nothing_to_learn_the_oracle_is_silent_and_no_lesson_moves_success() -> None:
    measuring = runner(SETTINGS[-1])
    assert not learners.oracle(measuring.provider.world).library.experiences
    rules = learners.oracle(provider_of(CLEAN, 5).world).library
    fresh = tasks_of(measuring.provider, 200, "test")
    moved = await worth(measuring, fresh, rules, samples=4) - await worth(measuring, fresh, Library(), samples=4)
    assert abs(moved) < 0.06


async def test_a_runner_counts_every_rollout_by_stage() -> None:
    counting = runner(CLEAN)
    prior = Prior("s", 1, Library())
    tasks = tasks_of(counting.provider, 3, "train")
    made = await counting.run(tasks, prior, samples=4, sampling=Sampling(0.7, stage="gate"))
    assert [len(rollouts) for rollouts in made] == [4, 4, 4]
    assert dict(counting.made) == {"gate": 12}


async def test_ours_leaves_what_was_there_unless_the_gate_says_helps() -> None:
    few = learners.TRAINING.model_copy(
        update={"epochs": 1, "gate": Gate(samples=1), "splits": Splits(held_out=0.98, validation=0.0)}
    )
    outcome = await learners.ours(runner(SETTINGS[-1]), few)
    assert (outcome.verdict, outcome.library) == ("no effect shown", Library())


def rows(ours: float, helps: int = 0) -> list[dict[str, Any]]:
    """Ten seeds of each setting in which every learner is worth the same everywhere."""
    return [
        {"setting": setting.name, "seed": seed}
        | {
            name: {"reward": worth, "calls": 10, "verdict": "helps" if seed < helps else "no effect shown", "path": []}
            for name, worth in zip(NAMES, (0.4, 0.4, 0.4, 0.4, 0.41, ours, 0.7), strict=True)
        }
        for setting in SETTINGS
        for seed in range(10)
    ]


def test_targets_are_met_and_missed_by_the_numbers() -> None:
    assert not [line for line in targets(found(rows(0.69))) if not line.startswith("met: ")]
    missed = [line for line in targets(found(rows(0.3, helps=2))) if line.startswith("**missed**")]
    assert len(missed) == 6 + 6 + 1 + 1 + 1


def test_a_run_that_was_stopped_is_reported_by_the_seeds_that_every_setting_has() -> None:
    stopped = rows(0.5)[:-3]
    assert {row["seed"] for row in finished(stopped)} == set(range(7))
    told = report([row | {"tfgrpo": "a1", "tfgrpo/simulation": "b2"} for row in finished(stopped)])
    assert told.startswith("7 seeds, 0 to 6; simulator at commit b2, learner at a1.")
    assert report(finished(stopped[:3])) == "No seed is finished in all settings.\n"


def test_the_paper_is_taken_at_its_best_batch() -> None:
    assert {one.paper for one in found(rows(0.5))} == {"paper 100"}
