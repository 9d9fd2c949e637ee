from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

from tests.tfgrpo.scripted import JSON, Reply, sections, serving, stage
from tests.tfgrpo.test_trainer import Silent
from tfgrpo.library import Limits
from tfgrpo.llm import Llm
from tfgrpo.optimizer import Optimizer
from tfgrpo.rollouts import Prior, Sampling
from tfgrpo.trainer import Learned, Practice, Trainer
from tfgrpo.types import Library, Message, Rollout, Task
from tfgrpo.usage import Ledger

TASKS = [Task(f"k{number:02}", (Message("user", f"task {number}"),), "yes") for number in range(60)]
VALIDATION = tuple(Task(f"v{number}", (Message("user", f"check {number}"),), "yes") for number in range(9))


@dataclass
class Scripted:
    """A policy that is right half of the time; `effects` say how a lesson moves that."""

    effects: dict[str, float]
    model: str = "policy"
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    async def run(
        self, tasks: Sequence[Task], prior: Prior, *, samples: int, sampling: Sampling
    ) -> list[tuple[Rollout, ...]]:
        return [tuple(self._rollout(task, prior, n, sampling) for n in range(samples)) for task in tasks]

    def _rollout(self, task: Task, prior: Prior, sample: int, sampling: Sampling) -> Rollout:
        self.calls.append((sampling.stage, task.key, prior.block))
        luck = crc32(f"{task.key} {sample} {sampling.seed}".encode()) / 2**32
        chance = 0.5 + sum(effect for text, effect in self.effects.items() if text in prior.block)
        right = float(luck < chance)
        return Rollout(f"{task.key}.{sample}", (Message("assistant", f"did {right}"),), right)


def proposing(*texts: str, again: Sequence[str] = ()) -> object:
    """An optimizer that adds `texts` at its first consolidation and `again` at later ones."""
    left = [list(texts), list(again)]

    def reply(request: JSON) -> Reply:
        match stage(request):
            case "contrast":
                return json.dumps({"analysis": "a", "lessons": ["A lesson."]})
            case "propose":
                return json.dumps({"operations": [{"why": "w", "operation": "add", "ids": [], "text": "A lesson."}]})
            case _:
                now = left.pop(0) if len(left) > 1 else left[0]
                return json.dumps(
                    {"operations": [{"why": "w", "operation": "add", "ids": [], "text": text} for text in now]}
                )

    return reply


async def practised(
    runner: Scripted, reply: object, *, epochs: int = 2, trial: float | None = 0.8, validation: tuple[Task, ...] = ()
) -> tuple[Learned, list[JSON]]:
    async with serving(reply) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:  # type: ignore[arg-type]
        practice = Practice(runner, "s", 1, epochs=epochs, trial=trial, validation=validation)
        learned = await Trainer(Optimizer(llm), Limits(), Silent()).practise(TASKS, Library(), practice)
    return learned, endpoint.requests


def texts(library: Library) -> list[str]:
    return [one.text for one in library.experiences]


MIXED = {"Good lesson.": 0.3, "Bad lesson.": -0.3}


async def test_the_harmful_half_of_an_edit_is_taken_back_and_the_good_one_stays() -> None:
    learned, _ = await practised(Scripted(MIXED), proposing("Good lesson.", "Bad lesson."))
    assert texts(learned.library) == ["Good lesson."]
    (refusal,) = learned.steps[1].taken_back
    assert (refusal.operation.text, "less with it than without" in refusal.reason) == ("Bad lesson.", True)


async def test_what_did_harm_is_shown_to_the_optimizer_and_not_taken_again() -> None:
    learned, requests = await practised(
        Scripted(MIXED), proposing("Good lesson.", "Bad lesson.", again=["bad lesson."]), epochs=3
    )
    later = [sections(one) for one in requests if stage(one) == "propose" and "<rejected>" in sections(one)]
    assert (texts(learned.library), "- add: Bad lesson. (refused: tasks earned" in later[0]) == (["Good lesson."], True)
    assert "refused before" in learned.steps[1].refused[0].reason


async def test_without_a_trial_edits_stand_as_they_come() -> None:
    learned, _ = await practised(Scripted(MIXED), proposing("Good lesson.", "Bad lesson."), trial=None)
    assert (texts(learned.library), len(learned.steps)) == (["Good lesson.", "Bad lesson."], 2)


async def test_the_last_edit_is_tried_before_it_is_the_result() -> None:
    runner = Scripted(MIXED)
    learned, _ = await practised(runner, proposing("Good lesson.", "Bad lesson."), epochs=1)
    assert (texts(learned.library), [step.stage for step in learned.steps]) == (["Good lesson."], ["learn", "check"])
    assert len(runner.calls) == 2 * 5 * len(TASKS)


async def test_while_on_trial_a_change_is_there_for_half_of_the_tasks() -> None:
    runner = Scripted({})
    await practised(runner, proposing("Good lesson."), epochs=1)
    with_it = {key for _, key, block in runner.calls if "Good" in block}
    assert len(with_it) == len(TASKS) // 2


async def test_the_best_epoch_end_library_on_validation_tasks_is_the_result() -> None:
    runner = Scripted({"Early.": 0.4, "Late.": -0.6})
    learned, requests = await practised(runner, proposing("Early.", again=["Late."]), trial=None, validation=VALIDATION)
    assert (texts(learned.library), texts(learned.epochs[1].library)) == (["Early."], ["Early.", "Late."])
    assert (learned.epochs[0].score or 0) > (learned.epochs[1].score or 0)
    assert not re.search(r"check \d", json.dumps(requests))


async def test_a_run_repeats_to_the_letter() -> None:
    first, second = [await practised(Scripted(MIXED), proposing("Good lesson.", "Bad lesson.")) for _ in range(2)]
    assert first[0] == second[0]
