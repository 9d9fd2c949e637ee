"""What a grader is and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from tfgrpo.checks.results import judged
from tfgrpo.errors import GraderError
from tfgrpo.types import Rollout, Task


@dataclass(frozen=True, slots=True)
class Grade:
    """A reward in [0, 1], and what the grader has to say about it. Without a reward the rollout stays unjudged."""

    reward: float | None
    critique: str | None = None


class Grader(Protocol):
    """Judges rollouts. `needs_reference` says whether a task must carry the right answer."""

    @property
    def name(self) -> str:
        """What it is called in configuration and errors."""

    @property
    def needs_reference(self) -> bool:
        """Whether a task must carry the right answer."""

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Return the reward in [0, 1], with a critique where there is something to say.

        Raises:
            GraderError: the grader failed on this rollout.
            UsageError: the grader cannot judge anything, for what it was given is of no use.
        """

    async def close(self) -> None:
        """Let go of processes and connections; grading again takes them up anew."""


def checked(result: Any) -> Grade:
    """Return what a grader gave as a grade (`checks.results`).

    Raises:
        GraderError: it is none.
    """
    try:
        return Grade(*judged(result))
    except ValueError as error:
        raise GraderError(str(error)) from error
