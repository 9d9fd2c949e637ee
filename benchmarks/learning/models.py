"""The two models of a run, in process: a runner of the policy that labels and counts its rollouts, and the optimizer.

No HTTP and no memo: a run of the comparison makes some ten thousand rollouts for each seed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, TypeAlias

from benchmarks.learning.settings import Setting
from tfgrpo.configuration import Model
from tfgrpo.llm import Llm
from tfgrpo.rollouts import Prior, Sampling, inject
from tfgrpo.simulation.provider import OPTIMIZER, POLICY, Provider
from tfgrpo.simulation.tasks import grade
from tfgrpo.types import Library, Message, Rollout, Task
from tfgrpo.usage import Ledger

JSON: TypeAlias = dict[str, Any]
Label: TypeAlias = Callable[[Task, str, float], float]
"""From a task, the luck of a rollout and its true reward to the label."""

SET = "compare"
VERSION = 1


@dataclass(frozen=True, slots=True)
class SimulatedRunner:
    """Makes rollouts by a provider in process. `made` counts them by stage."""

    provider: Provider
    label: Label
    made: Counter[str] = field(default_factory=Counter)

    @property
    def model(self) -> str:
        """The policy model's name."""
        return POLICY

    async def run(
        self, tasks: Sequence[Task], prior: Prior, *, samples: int, sampling: Sampling
    ) -> list[tuple[Rollout, ...]]:
        """Return `samples` rollouts of each task under `prior`; see `tfgrpo.rollouts.Runner`."""
        self.made[sampling.stage] += samples * len(tasks)
        block = prior.block
        return [self._rollouts(task, block, samples, sampling) for task in tasks]

    def _rollouts(self, task: Task, block: str, samples: int, sampling: Sampling) -> tuple[Rollout, ...]:
        request = {
            "model": POLICY,
            "messages": inject(task.messages, block),
            "n": samples,
            "temperature": sampling.temperature,
            "seed": sampling.seed,
        }
        answer = self.provider.answer(json.dumps(request).encode())
        rollouts = []
        for number, text in enumerate(answer.texts):
            name = f"{answer.id}.{number}"
            luck = f"{self.made[sampling.stage]} {sampling.stage} {number}"
            reward = self.label(task, luck, grade(text, task.reference))
            rollouts.append(Rollout(name, (Message("assistant", text),), reward=reward))
        return tuple(rollouts)


class InProcess:
    """An endpoint (`tfgrpo.endpoint.Endpoint`) that is a provider in process."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def ask(self, request: JSON) -> JSON:
        """Return the provider's answer."""
        answer = self._provider.answer(json.dumps(request).encode())
        return {
            "choices": [{"message": {"content": text}} for text in answer.texts],
            "usage": {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens},
        }

    async def close(self) -> None:
        """Nothing is held here."""


def provider_of(setting: Setting, seed: int) -> Provider:
    """Return a fresh provider: every learner starts from the same one."""
    return Provider(seed, setting.dials, world=setting.world(seed))


def optimizer_of(provider: Provider) -> Llm:
    """Return the optimizer model of a provider."""
    model = Model(model=OPTIMIZER, base_url="http://in-process")
    return Llm(model, ledger=Ledger(), endpoint=InProcess(provider))


def tasks_of(provider: Provider, number: int, split: str) -> list[Task]:
    """Return the first tasks of a split of a provider's world."""
    return [
        Task(f"{split}-{at}", (Message("user", row["question"]),), row["answer"])
        for at, row in enumerate(provider.world.tasks(number, split=split))
    ]


async def worth(runner: SimulatedRunner, tasks: Sequence[Task], library: Library, *, samples: int) -> float:
    """Return the mean reward of `tasks` under a library."""
    sampling = Sampling(0.3, seed=1, stage="measure")
    made = await runner.run(tasks, Prior(SET, VERSION, library), samples=samples, sampling=sampling)
    return fmean(one.reward or 0.0 for rollouts in made for one in rollouts)
