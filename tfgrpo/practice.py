"""Fresh rollouts to learn from: made under the library as it grows, with its latest changes on trial.

It makes rollouts and judges changes; it makes no edit. The algorithm is `trainer`'s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean
from typing import Final

from tfgrpo.rollouts import Prior, Runner, Sampling, seed_of
from tfgrpo.steps import EpochEnd, Listener
from tfgrpo.tasks import gather
from tfgrpo.trial import FEWEST, Change, Finding, Trial, changes, surplus, without
from tfgrpo.types import Group, Library, Refusal, Rollout, Task
from tfgrpo.votes import Votes

VOTERS: Final = 60
"""Training tasks from which votes are counted: the lessons of fewer say too seldom the same to tell it from chance."""


@dataclass(frozen=True, slots=True)
class Practice:
    """How fresh rollouts are made. `version` names the library in the block's markers, as live injection would.

    `trial` is how sure harm must be for a change to be taken back, one-sided; None: no change is on trial. With
    `support`, the share of groups that must speak of an entry, entries are on trial for the whole run and judged by
    what later lessons say of them too. On `validation` tasks the best epoch-end library is chosen; without any it is
    the last one.
    """

    runner: Runner
    set_name: str
    version: int
    group_size: int = 5
    epochs: int = 3
    temperature: float = 0.7
    seed: int = 0
    trial: float | None = 0.7
    support: float | None = None
    validation: tuple[Task, ...] = ()
    validation_temperature: float = 0.3


@dataclass(frozen=True, slots=True)
class Batch:
    """Rolled-out tasks: the groups, the library each was made under, and what that told of the changes on trial.

    `library` is what remains of the current one: without the changes that did harm.
    """

    groups: tuple[Group, ...]
    under: Mapping[str, Library]
    library: Library
    findings: tuple[Finding, ...] = ()

    @property
    def undone(self) -> tuple[Change, ...]:
        """The changes that were taken back."""
        return tuple(one.change for one in self.findings if one.undone)

    @property
    def taken_back(self) -> tuple[Refusal, ...]:
        """The same as refusals, with the numbers."""
        return tuple(Refusal(one.change.operation, str(one)) for one in self.findings if one.undone)

    @property
    def reward(self) -> float | None:
        """The mean reward of all rollouts that were judged."""
        return _mean([one for group in self.groups for one in group.rollouts])

    @property
    def tokens(self) -> int:
        """What the rollouts took, as far as it is known."""
        rollouts = [one for group in self.groups for one in group.rollouts]
        return sum((one.prompt_tokens or 0) + (one.completion_tokens or 0) for one in rollouts)


@dataclass(slots=True)
class Course:
    """One run of practice over `tasks` tasks: the trial as it stands, and what each task earned so far."""

    practice: Practice
    listener: Listener
    library: Library
    tasks: int
    rounds: int = 0
    trial: Trial | None = None
    earned: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        """Start with the given library trusted. Where tasks are too few to show anything, nothing is on trial."""
        if self.practice.trial is not None and self.tasks >= 2 * FEWEST:
            support = self.practice.support if self.tasks >= VOTERS else None
            rounds = 1 if support is None else self.practice.epochs + 1
            self.trial = Trial(
                self.library,
                enough=self.tasks * rounds,
                confidence=self.practice.trial,
                support=support,
            )

    @property
    def voting(self) -> bool:
        """Whether what lessons say of entries is counted."""
        return self.trial is not None and self.trial.support is not None

    def on_trial(self, library: Library) -> bool:
        """Whether a change of `library` is not settled yet."""
        return self.trial is not None and bool(changes(self.trial.trusted, library))

    def contested(self, library: Library) -> frozenset[str]:
        """Return the ids of entries that no edit may take away: votes contradict each other, so rewards decide."""
        return frozenset() if self.trial is None else self.trial.contested(library)

    def counted(self, votes: Mapping[str, Votes]) -> None:
        """Take note of what lessons said of entries."""
        if self.trial is not None:
            self.trial = self.trial.counted(votes)

    async def closed(self, tasks: Sequence[Task], library: Library) -> Batch:
        """End all trials: with votes by what is known, without by rolling out each task once more."""
        if self.trial is None or self.trial.support is None:
            return await self.rolled_out(tasks, library, self.practice.epochs, closing=True)
        findings = tuple(self.trial.findings(library, closing=True))
        batch = Batch((), {}, library, findings)
        return Batch((), {}, without(library, batch.undone), findings)

    async def rolled_out(self, tasks: Sequence[Task], library: Library, epoch: int, *, closing: bool = False) -> Batch:
        """Roll out each task, judge what is on trial, and return what to learn from."""
        practice = self.practice
        self.listener.begin("rollout", len(tasks) * practice.group_size)
        # Every epoch draws anew: the same seeds under the same library would repeat the same rollouts.
        sampling = Sampling(practice.temperature, seed=seed_of(practice.seed, epoch))
        self.rounds += 1
        absent = [frozenset[str]()] * len(tasks)
        if self.trial is not None:
            absent = self.trial.draw(library, len(tasks), seed_of(practice.seed, -self.rounds))
        under = [self._without(library, ids) for ids in absent]
        made = await self._made(tasks, under, sampling)
        groups = tuple(
            Group(task.key, task, practice.runner.model, practice.set_name, practice.version, rollouts)
            for task, rollouts in zip(tasks, made, strict=True)
        )
        findings = self._judged(library, groups, absent, closing=closing)
        batch = Batch(groups, {group.key: had for group, had in zip(groups, under, strict=True)}, library, findings)
        return Batch(batch.groups, batch.under, without(library, batch.undone), findings)

    async def chosen(self, ends: Sequence[Library]) -> tuple[Library, tuple[EpochEnd, ...]]:
        """Return the best of the epoch-end libraries, of equals the latest, and all with what they were chosen by."""
        practice, tasks = self.practice, self.practice.validation
        different = list({_texts(end): end for end in ends}.values())
        if not tasks or len(different) == 1:
            return ends[-1], tuple(map(EpochEnd, ends))
        self.listener.begin("validate", len(different) * len(tasks) * practice.group_size)
        sampling = Sampling(practice.validation_temperature, practice.seed, "validate")
        scores: dict[tuple[str, ...], float] = {}
        for end in different:
            prior = Prior(practice.set_name, practice.version, end)
            made = await practice.runner.run(tasks, prior, samples=practice.group_size, sampling=sampling)
            scores[_texts(end)] = _mean([one for rollouts in made for one in rollouts]) or 0.0
        scored = tuple(EpochEnd(end, scores[_texts(end)]) for end in ends)
        return max(reversed(scored), key=lambda end: end.score or 0.0).library, scored

    def _without(self, library: Library, ids: frozenset[str]) -> Library:
        if self.trial is None or not ids:
            return library
        return without(library, [change for change in changes(self.trial.trusted, library) if change.id in ids])

    async def _made(
        self, tasks: Sequence[Task], under: Sequence[Library], sampling: Sampling
    ) -> list[tuple[Rollout, ...]]:
        """Roll the tasks out, those with the same library in one go."""
        alike: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for at, library in enumerate(under):
            alike[_texts(library)].append(at)
        practice = self.practice
        made = await gather(
            practice.runner.run(
                [tasks[at] for at in places],
                Prior(practice.set_name, practice.version, under[places[0]]),
                samples=practice.group_size,
                sampling=sampling,
            )
            for places in alike.values()
        )
        placed = dict(zip(chain(*alike.values()), chain(*made), strict=True))
        return [placed[at] for at in range(len(tasks))]

    def _judged(
        self, library: Library, groups: Sequence[Group], absent: Sequence[frozenset[str]], *, closing: bool
    ) -> tuple[Finding, ...]:
        means = [_mean(group.rollouts) for group in groups]
        judged = [at for at, mean in enumerate(means) if mean is not None]
        groups, absent = [groups[at] for at in judged], [absent[at] for at in judged]
        rewards = [mean for mean in means if mean is not None]
        before = [fmean(self.earned[group.key]) if self.earned[group.key] else None for group in groups]
        for group, mean in zip(groups, rewards, strict=True):
            self.earned[group.key].append(mean)
        if self.trial is None:
            return ()
        trial = self.trial.observed(library, absent, surplus(rewards, before))
        findings = tuple(trial.findings(library, closing=closing))
        undone = [one.change for one in findings if one.undone]
        self.trial = trial.settled(library, undone, ended=closing)
        return findings


def _texts(library: Library) -> tuple[str, ...]:
    return tuple(one.text for one in library.experiences)


def _mean(rollouts: Sequence[Rollout]) -> float | None:
    """Return the mean reward of the rollouts that were judged."""
    rewards = [one.reward for one in rollouts if one.reward is not None]
    return fmean(rewards) if rewards else None
