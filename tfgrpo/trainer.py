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
from dataclasses import dataclass, field, replace

from tfgrpo import library as libraries
from tfgrpo.consolidate import consolidate
from tfgrpo.critique import Critic, Critique, chosen
from tfgrpo.library import Limits
from tfgrpo.modes import Mode, differs, shown
from tfgrpo.optimizer import Optimizer
from tfgrpo.practice import Batch, Course, Practice
from tfgrpo.quorum import Ballot, Quorum, backing, opposition
from tfgrpo.rewards import contrasts
from tfgrpo.safety.leaks import Guard
from tfgrpo.steps import EpochEnd, Learned, Listener, Step
from tfgrpo.trial import without
from tfgrpo.types import Group, Library, Operation, Refusal, Task
from tfgrpo.votes import count

__all__ = ["EpochEnd", "Learned", "Listener", "Practice", "Step", "Trainer", "tells"]


@dataclass(frozen=True, slots=True)
class Trainer:
    """The algorithm with its collaborators.

    `given` holds the libraries that logged rollouts ran with, by version of the set. With `memory` the optimizer is
    shown what was refused: in the step before, and for harm in any; and `inherited`, what did harm in earlier runs,
    which is shown but may be tried again. Groups are taken in the order of their keys and results put together in the
    order of groups, so that a run depends on what it is given and on the models' answers only, never on which call
    ended first.
    """

    optimizer: Optimizer
    limits: Limits
    listener: Listener
    batch_size: int = 100
    given: dict[int, Library] = field(default_factory=dict)
    memory: bool = True
    mode: Mode = "reward and reference"
    inherited: tuple[Refusal, ...] = ()
    quorum: Quorum | None = None
    """Where it is asked for, steps say which groups back each entry."""

    async def learn(self, groups: Sequence[Group], library: Library) -> Learned:
        """Learn from groups as they were logged: one pass, each group is used once."""
        steps: list[Step] = []
        ordered = sorted(groups, key=lambda group: group.key)
        for at in range(0, len(ordered), self.batch_size):
            batch = Batch(tuple(ordered[at : at + self.batch_size]), {}, library)
            steps.append(await self._step(batch, library, steps))
            library = steps[-1].after
        return Learned(library, tuple(steps))

    async def practise(self, tasks: Sequence[Task], library: Library, practice: Practice) -> Learned:
        """Learn from fresh rollouts, made under the library as it grows, for some epochs over the tasks."""
        course = Course(practice, self.listener, library, len(tasks))
        steps: list[Step] = []
        ends: list[Library] = []
        for epoch in range(practice.epochs):
            for at in range(0, len(tasks), self.batch_size):
                batch = await course.rolled_out(tasks[at : at + self.batch_size], library, epoch)
                ends = [without(end, batch.undone) for end in ends]
                last = course.voting and 0 < epoch == practice.epochs - 1
                step = await self._step(
                    batch, library, steps, voting=course.voting, closing=last, contested=course.contested(batch.library)
                )
                course.counted(step.votes)
                steps.append(replace(step, epoch=epoch))
                library = step.after
            ends.append(library)
        if course.on_trial(library):
            batch = await course.closed(tasks, library)
            ends = [without(end, batch.undone) for end in ends]
            steps.append(replace(_told(batch, library), stage="check", epoch=practice.epochs))
        best, epochs = await course.chosen([libraries.fit(end, self.limits).library for end in ends])
        return Learned(best, tuple(steps), epochs)

    async def _step(
        self,
        batch: Batch,
        before: Library,
        earlier: Sequence[Step],
        *,
        voting: bool = False,
        closing: bool = False,
        contested: frozenset[str] = frozenset(),
    ) -> Step:
        """Learn from a batch. With `voting` its lessons are held against the library once more after the edit, to count
        what they say of its entries; when `closing` they are held against it as it is, and there is no edit.
        No edit deletes an entry of `contested`.
        """
        step, library = _told(batch, before), batch.library
        telling = [group for group in batch.groups if tells(group, self.mode)]
        if not telling or (closing and not library.experiences):
            return step
        critic = Critic(self.optimizer, self.given, self.listener.advance, batch.under)
        seen = [shown(group, self.mode) for group in telling]
        self.listener.begin("summarise", sum(len(chosen(group).rollouts) for group in seen))
        summaries = await critic.summaries(seen)
        self.listener.begin("contrast", len(telling))
        lessons = await critic.lessons(summaries, library)
        if closing:
            ballots = await self._ballots(critic, lessons, library)
            return replace(
                step,
                telling=tuple(telling),
                lessons=_number(lessons),
                votes=count([one.operations for one in ballots], library),
                backing=backing(library, (), ballots) if self.quorum else {},
            )
        self.listener.begin("propose", len(telling))
        harmful, unfit = self._remembered([*earlier, step])
        earlier_runs = self.inherited if self.memory else ()
        critiques = await critic.proposals(lessons, library, [*earlier_runs, *harmful, *unfit])
        proposals = [operation for critique in critiques for operation in critique.operations]
        self.listener.begin("consolidate", 1)
        limits = replace(self.limits, fault=Guard(batch.groups, library, self.limits.fault))
        consolidation = await consolidate(
            self.optimizer, library, proposals, limits, rejected=harmful, remembered=earlier_runs, contested=contested
        )
        self.listener.advance("consolidate")
        after = consolidation.edit.library
        ballots = await self._ballots(critic, lessons, after) if voting or self._unsure(after, proposals) else []
        faults = [f"group {c.group.key}: {fault}" for c in critiques for fault in c.faults]
        return replace(
            step,
            telling=tuple(telling),
            lessons=_number(critiques),
            proposals=len(proposals),
            applied=consolidation.edit.applied,
            refused=consolidation.edit.refused,
            faults=(*faults, *consolidation.faults),
            votes=count([one.operations for one in ballots], after) if voting else {},
            backing=backing(after, proposals, ballots) if self.quorum else {},
            opposition=opposition(proposals) if self.quorum else {},
            after=after,
        )

    async def _ballots(self, critic: Critic, lessons: Sequence[Critique], library: Library) -> list[Ballot]:
        self.listener.begin("confirm", len(lessons))
        cast = await critic.ballots(lessons, library)
        return [Ballot(one.group.key, len(one.lessons), said) for one, said in zip(lessons, cast, strict=True)]

    def _unsure(self, library: Library, proposals: Sequence[Operation]) -> bool:
        """Whether an entry lacks its quorum by what proposals say, so that groups are asked one by one."""
        if self.quorum is None or not self.quorum.asks:
            return False
        backed = backing(library, proposals)
        return any(text not in self.quorum.trusted and not self.quorum.met(backed[text]) for text in backed)

    def _remembered(self, steps: Sequence[Step]) -> tuple[list[Refusal], list[Refusal]]:
        """Return what the optimizer is told not to try again: all that did harm, and what did not fit just before."""
        if not self.memory:
            return [], []
        harmful = [one for step in steps for one in step.harmful]
        return harmful, [refusal for step in steps[-2:-1] for refusal in step.refused]


def _number(critiques: Sequence[Critique]) -> int:
    return sum(len(critique.lessons) for critique in critiques)


def _told(batch: Batch, before: Library) -> Step:
    """Return the step that learns nothing from a batch: what its rollouts came to."""
    return Step(
        groups=len(batch.groups),
        telling=(),
        reward=batch.reward,
        tokens=batch.tokens,
        findings=batch.findings,
        taken_back=batch.taken_back,
        before=before,
        after=batch.library,
    )


def tells(group: Group, mode: Mode = "reward and reference") -> bool:
    """Whether there is something to contrast: judged rollouts differ in reward, or unjudged ones in their answers."""
    if mode == "neither":
        return differs(group)
    return contrasts(rollout.reward for rollout in group.rollouts if rollout.reward is not None)
