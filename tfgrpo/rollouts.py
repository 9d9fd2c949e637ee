"""Fresh rollouts of tasks under a library, each with a reward from a grader: the port `Runner`, and one completion.

The library's block goes where live injection puts it, so that what is measured here is what live requests get. Only
tasks of plain messages are run: no tool result is ever invented.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from tfgrpo import library as libraries
from tfgrpo.errors import RequestRefused
from tfgrpo.graders import Grader
from tfgrpo.library import Limits
from tfgrpo.llm import Llm
from tfgrpo.selection import Selector, first_request, part
from tfgrpo.tasks import gather
from tfgrpo.types import Library, Message, Rollout, Task

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How rollouts are drawn. `stage` is the name they are accounted under."""

    temperature: float
    seed: int = 0
    stage: str = "rollout"


@dataclass(frozen=True, slots=True)
class Prior:
    """A library as rollouts are given it, under the name that its block carries."""

    set: str
    version: int
    library: Library

    @property
    def block(self) -> str:
        """What is put in front of the model, "" for an empty library."""
        return libraries.render(self.library, name=self.set, version=self.version)


class Runner(Protocol):
    """Makes fresh rollouts of tasks by one policy model."""

    @property
    def model(self) -> str:
        """The policy model's name."""

    async def run(
        self, tasks: Sequence[Task], prior: Prior, *, samples: int, sampling: Sampling
    ) -> list[tuple[Rollout, ...]]:
        """Return `samples` rollouts of each task under `prior`, in the order of the tasks.

        A rollout that fails is one with reward 0 and its `error`. Sample i of a task has the same luck whatever the
        library, as far as the model takes a seed: samples can be paired.
        """


@dataclass(frozen=True, slots=True)
class ChatRunner:
    """Makes a rollout of one completion by `llm`, and has it judged by `grader`.

    `limits`: a task gets a choice within them of a library that is larger, as a live trajectory does; None: the whole.
    """

    llm: Llm
    grader: Grader
    advance: Callable[[str], None]
    limits: Limits | None = None

    @property
    def model(self) -> str:
        """The policy model's name."""
        return self.llm.name

    async def run(
        self, tasks: Sequence[Task], prior: Prior, *, samples: int, sampling: Sampling
    ) -> list[tuple[Rollout, ...]]:
        """Return `samples` rollouts of each task under `prior`; see `Runner`."""
        blocks = [block for task, block in zip(tasks, self._blocks(tasks, prior), strict=True) for _ in range(samples)]
        drawn = [(task, sample) for task in tasks for sample in range(samples)]
        made = await gather(
            self._rollout(task, block, sample, sampling) for (task, sample), block in zip(drawn, blocks, strict=True)
        )
        return [tuple(made[at : at + samples]) for at in range(0, len(made), samples)]

    def _blocks(self, tasks: Sequence[Task], prior: Prior) -> list[str]:
        """The block of each task."""
        if self.limits is None or libraries.fits(prior.library, self.limits):
            return [prior.block] * len(tasks)
        selector = Selector(prior.library, self.limits)
        chosen = [selector.ids(first_request(task.messages)) for task in tasks]
        return [replaced(prior, library=part(prior.library, ids)).block for ids in chosen]

    async def _rollout(self, task: Task, block: str, sample: int, sampling: Sampling) -> Rollout:
        name = f"{task.key}.{sample}"
        try:
            completion = await self.llm.complete(
                inject(task.messages, block),
                stage=sampling.stage,
                temperature=sampling.temperature,
                seed=seed_of(sampling.seed, sample),
                sample=sample,
                may_be_empty=True,
                parameters=task.parameters,
            )
        except RequestRefused as error:
            return Rollout(name, (), reward=0.0, error=str(error))
        finally:
            self.advance(sampling.stage)
        rollout = Rollout(
            name,
            (Message("assistant", completion.text),),
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            usd=completion.usd,
        )
        grade = await self.grader.grade(task, rollout)
        comments = (grade.critique,) if grade.critique else ()
        return replace(rollout, reward=grade.reward, comments=comments)


def seed_of(seed: int, sample: int) -> int:
    """Return the seed of a sample, in 0..2**31-1. Neighbouring seeds share no samples."""
    digest = hashlib.blake2b(f"{seed}:{sample}".encode(), digest_size=4).digest()
    return int.from_bytes(digest) >> 1


def inject(messages: Sequence[Message], block: str) -> list[JSON]:
    """Return messages as JSON with `block` after the text of a leading system message, or as a new one.

    The same rule as live injection into chat completions; an empty block changes nothing.
    """
    sent: list[JSON] = [{"role": message.role, "content": message.text} for message in messages]
    if not block:
        return sent
    if not sent or sent[0]["role"] not in ("system", "developer"):
        return [{"role": "system", "content": block}, *sent]
    text = sent[0]["content"]
    return [{**sent[0], "content": f"{text}\n\n{block}" if text else block}, *sent[1:]]
