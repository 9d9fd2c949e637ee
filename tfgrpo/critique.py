"""What separates the better rollouts of a task from the worse ones, and what to change in the library for it.

Per telling group: summarise each rollout, contrast the group (the semantic group advantage of Training-Free GRPO,
arXiv 2510.08191 section 3), propose operations. It edits nothing and sees one group at a time; what groups agree on
is for `consolidate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Final

from msgspec.structs import replace

from tfgrpo import library as libraries
from tfgrpo.consolidate import rejection
from tfgrpo.errors import RequestRefused
from tfgrpo.optimizer import Optimizer
from tfgrpo.prompts import section, shorten
from tfgrpo.tasks import gather
from tfgrpo.transcripts import transcript
from tfgrpo.types import Group, Library, Message, Operation, Refusal, Rollout
from tfgrpo.usage import CHARACTERS_PER_TOKEN

SHORT: Final = 2_000
"""Characters up to which a single answer is its own summary."""
MOST_ROLLOUTS: Final = 10
"""Rollouts of one group that are contrasted; of more, the best and the worst are taken."""


@dataclass(frozen=True, slots=True)
class Critique:
    """What was learned from one group. `faults` say what went wrong on the way."""

    group: Group
    lessons: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Critic:
    """Criticises groups with one optimizer.

    `given` holds the libraries that logged rollouts ran with, by version of the set; `advance` is called with a
    stage's name as each of its calls ends.
    """

    optimizer: Optimizer
    given: Mapping[int, Library]
    advance: Callable[[str], None]
    under: Mapping[str, Library] = field(default_factory=dict)
    """The libraries that fresh rollouts were made under, by the key of their group; they come before `given`."""

    async def summaries(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups with what can be compared: at most `MOST_ROLLOUTS`, each as its summary."""
        return await gather(self._summarised(chosen(group)) for group in groups)

    async def lessons(self, groups: Sequence[Group], library: Library) -> list[Critique]:
        """Contrast each group."""
        return await gather(self._contrasted(group, library) for group in groups)

    async def proposals(
        self, critiques: Sequence[Critique], library: Library, rejected: Sequence[Refusal] = ()
    ) -> list[Critique]:
        """Propose operations for each group that gave a lesson, all against the same `library`."""
        return await gather(self._proposed(critique, library, rejected) for critique in critiques)

    async def ballots(self, critiques: Sequence[Critique], library: Library) -> list[tuple[Operation, ...]]:
        """Return what each group's lessons call for against `library`, to be counted and not applied."""
        return await gather(self._ballot(critique, library) for critique in critiques)

    async def _ballot(self, critique: Critique, library: Library) -> tuple[Operation, ...]:
        try:
            return (
                (await self.optimizer.operations("propose", _sections(critique, library))).value
                if critique.lessons
                else ()
            )
        except RequestRefused:
            return ()
        finally:
            self.advance("confirm")

    async def _summarised(self, group: Group) -> Group:
        rollouts = await gather(self._summary(group, rollout) for rollout in group.rollouts)
        return replace(group, rollouts=tuple(rollouts))

    async def _summary(self, group: Group, rollout: Rollout) -> Rollout:
        text = f"The attempt failed: {rollout.error}"
        if rollout.error is None:
            text = transcript(rollout.messages, self._room(1))
        if not self._is_summary(rollout):
            given = self.under.get(group.key, self.given.get(group.version, Library()))
            parts = [self._task(group), section("library", libraries.lines(given))]
            parts += [section("rollout", text, reward(rollout))]
            parts += _feedback("\n".join(rollout.comments)) + _reference(group)
            try:
                text = await self.optimizer.write("summarise", parts)
            except RequestRefused:
                # A rollout the optimizer will not read is still evidence: its own head and tail stand in.
                text = shorten(text, SHORT)
        self.advance("summarise")
        return replace(rollout, messages=(Message("assistant", text),))

    async def _contrasted(self, group: Group, library: Library) -> Critique:
        parts = [self._task(group), section("library", libraries.lines(library))]
        parts += [
            section("rollout", rollout.answer, {"number": str(number), **reward(rollout)})
            for number, rollout in enumerate(group.rollouts, 1)
        ]
        comments = [f"rollout {n}: {c}" for n, r in enumerate(group.rollouts, 1) for c in r.comments]
        parts += _feedback("\n".join(comments)) + _reference(group)
        try:
            answer = await self.optimizer.lessons(parts)
        except RequestRefused as error:
            return Critique(group, faults=(f"contrast: {error}",))
        finally:
            self.advance("contrast")
        return Critique(group, answer.value.lessons, faults=_named("contrast", answer.faults))

    async def _proposed(self, critique: Critique, library: Library, rejected: Sequence[Refusal]) -> Critique:
        if not critique.lessons:
            self.advance("propose")
            return critique
        parts = _sections(critique, library)
        if rejected:
            parts += [section("rejected", "\n".join(map(rejection, rejected)))]
        try:
            answer = await self.optimizer.operations("propose", parts)
        except RequestRefused as error:
            return changed(critique, faults=(*critique.faults, f"propose: {error}"))
        finally:
            self.advance("propose")
        operations = tuple(
            replace(operation, sources=(critique.group.key,))
            for operation in answer.value
            if operation.operation != "keep"
        )
        faults = (*critique.faults, *_named("propose", answer.faults))
        return changed(critique, operations=operations, faults=faults)

    def _task(self, group: Group) -> str:
        return section("task", transcript(group.task.messages, self._room(0.5)))

    def _room(self, share: float) -> int | None:
        """Return the characters of a share of what a rollout may take in a prompt, None where nothing is cut."""
        reserve = self.optimizer.reserve
        return None if reserve is None else int(reserve * CHARACTERS_PER_TOKEN * share)

    def _is_summary(self, rollout: Rollout) -> bool:
        """Whether a rollout needs no summary: one short answer and nothing else, or nothing that could have one."""
        if rollout.error is not None or not rollout.messages:
            return True
        return self.optimizer.reserve is not None and is_short(rollout)


def _sections(critique: Critique, library: Library) -> list[str]:
    """Return what every proposal is made from: the library, and one group's lessons."""
    lessons = "\n".join(f"- {lesson}" for lesson in critique.lessons)
    return [section("library", libraries.lines(library)), section("lessons", lessons)]


def chosen(group: Group) -> Group:
    """Return the group with its judged rollouts only, of many the best and the worst, in their order."""
    judged = [rollout for rollout in group.rollouts if rollout.reward is not None] or list(group.rollouts)
    if len(judged) > MOST_ROLLOUTS:
        ranks = sorted(range(len(judged)), key=lambda i: judged[i].reward or 0.0)
        half = MOST_ROLLOUTS // 2
        kept = sorted({*ranks[:half], *ranks[-half:]})
        judged = [judged[i] for i in kept]
    return replace(group, rollouts=tuple(judged))


def is_short(rollout: Rollout) -> bool:
    """Whether a rollout is one short answer and nothing else."""
    (message, *more) = rollout.messages
    return not more and not message.tool_calls and len(message.text) <= SHORT


def reward(rollout: Rollout) -> dict[str, str]:
    """Return a rollout's reward as the attribute that prompts show, none for one that is not judged."""
    return {} if rollout.reward is None else {"reward": str(round(rollout.reward, 3))}


def _feedback(text: str) -> list[str]:
    return [section("feedback", text)] if text else []


def _reference(group: Group) -> list[str]:
    return [section("reference", group.task.reference)] if group.task.reference is not None else []


def _named(stage: str, faults: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{stage}: {fault}" for fault in faults)
