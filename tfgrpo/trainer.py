"""Training-Free GRPO (arXiv 2510.08191): groups of rollouts in, an edited experience library out.

    for epoch, for batch:
        groups    = rollouts of each task under the current library, made by a runner or as logged
        telling   = groups that contrast
        summaries = summarise each rollout of the telling groups
        lessons   = contrast each group
        proposals = propose operations for each group, all against the same library
        edit      = consolidate: one call that sees every proposal
        library   = the library with the edit applied

It knows no store and no command line. Left out on purpose: whether the result helps is for `evaluation` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tfgrpo.consolidate import consolidate
from tfgrpo.critique import Critic, chosen
from tfgrpo.library import Limits
from tfgrpo.optimizer import Optimizer
from tfgrpo.rollouts import Prior, Runner, Sampling, seed_of
from tfgrpo.trajectories import contrasts
from tfgrpo.types import Group, Library, Operation, Refusal, Task


class Listener(Protocol):
    """Is told how far training is."""

    def begin(self, stage: str, total: int) -> None:
        """A stage with so many calls begins."""

    def advance(self, stage: str) -> None:
        """One call of the stage ended."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch came to. `lessons` counts them, `faults` say what could not be used and why."""

    groups: int
    telling: tuple[Group, ...]
    lessons: int = 0
    proposals: int = 0
    applied: tuple[Operation, ...] = ()
    refused: tuple[Refusal, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Learned:
    """The library at the end, and how it came about."""

    library: Library
    steps: tuple[Step, ...]

    @property
    def applied(self) -> int:
        """How many operations were applied."""
        return sum(len(step.applied) for step in self.steps)


@dataclass(frozen=True, slots=True)
class Trainer:
    """The algorithm with its collaborators.

    `given` holds the libraries that logged rollouts ran with, by version of the set. Groups are taken in the order of
    their keys and results put together in the order of groups, so that a run depends on what it is given and on the
    models' answers only, never on which call ended first.
    """

    optimizer: Optimizer
    limits: Limits
    listener: Listener
    batch_size: int = 100
    given: dict[int, Library] = field(default_factory=dict)

    async def learn(self, groups: Sequence[Group], library: Library) -> Learned:
        """Learn from groups as they were logged: one pass, each group is used once."""
        steps: list[Step] = []
        ordered = sorted(groups, key=lambda group: group.key)
        for at in range(0, len(ordered), self.batch_size):
            library, step = await self._step(ordered[at : at + self.batch_size], library, steps)
            steps.append(step)
        return Learned(library, tuple(steps))

    async def practise(self, tasks: Sequence[Task], library: Library, practice: Practice) -> Learned:
        """Learn from fresh rollouts, made under the library as it grows, for some epochs over the tasks."""
        steps: list[Step] = []
        for epoch in range(practice.epochs):
            for at in range(0, len(tasks), self.batch_size):
                batch = tasks[at : at + self.batch_size]
                groups = await self._rolled_out(batch, library, practice, epoch)
                library, step = await self._step(groups, library, steps)
                steps.append(step)
        return Learned(library, tuple(steps))

    async def _rolled_out(self, tasks: Sequence[Task], library: Library, practice: Practice, epoch: int) -> list[Group]:
        size = practice.group_size
        self.listener.begin("rollout", len(tasks) * size)
        prior = Prior(practice.set_name, practice.version, library)
        # Every epoch draws anew: the same seeds under the same library would repeat the same rollouts.
        sampling = Sampling(practice.temperature, seed=seed_of(practice.seed, epoch))
        made = await practice.runner.run(tasks, prior, samples=size, sampling=sampling)
        return [
            Group(task.key, task, practice.runner.model, practice.set_name, practice.version, rollouts)
            for task, rollouts in zip(tasks, made, strict=True)
        ]

    async def _step(self, groups: Sequence[Group], library: Library, earlier: Sequence[Step]) -> tuple[Library, Step]:
        telling = [group for group in groups if tells(group)]
        if not telling:
            return library, Step(len(groups), ())
        critic = Critic(self.optimizer, self.given, self.listener.advance)
        self.listener.begin("summarise", sum(len(chosen(group).rollouts) for group in telling))
        summaries = await critic.summaries(telling)
        self.listener.begin("contrast", len(telling))
        lessons = await critic.lessons(summaries, library)
        self.listener.begin("propose", len(telling))
        rejected = [refusal for step in earlier[-1:] for refusal in step.refused]
        critiques = await critic.proposals(lessons, library, rejected)
        proposals = [operation for critique in critiques for operation in critique.operations]
        self.listener.begin("consolidate", 1)
        consolidation = await consolidate(self.optimizer, library, proposals, self.limits)
        self.listener.advance("consolidate")
        faults = [f"group {c.group.key}: {fault}" for c in critiques for fault in c.faults]
        return consolidation.edit.library, Step(
            groups=len(groups),
            telling=tuple(telling),
            lessons=sum(len(critique.lessons) for critique in critiques),
            proposals=len(proposals),
            applied=consolidation.edit.applied,
            refused=consolidation.edit.refused,
            faults=(*faults, *consolidation.faults),
        )


@dataclass(frozen=True, slots=True)
class Practice:
    """How fresh rollouts are made. `version` names the library in the block's markers, as live injection would."""

    runner: Runner
    set_name: str
    version: int
    group_size: int = 5
    epochs: int = 3
    temperature: float = 0.7
    seed: int = 0


def tells(group: Group) -> bool:
    """Whether the judged rollouts of a group differ in reward."""
    return contrasts(rollout.reward for rollout in group.rollouts if rollout.reward is not None)
