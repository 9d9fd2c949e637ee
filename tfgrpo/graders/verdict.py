"""What a grader is and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

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
    """Return what a grader gave as a grade: a number in [0, 1], a bool, or such a one with a critique.

    Raises:
        GraderError: it is something else.
    """
    reward, critique = result if isinstance(result, list | tuple) and len(result) == 2 else (result, None)  # noqa: PLR2004 - a pair
    if not isinstance(reward, Real) or not 0 <= float(reward) <= 1:
        raise GraderError(f"it returned {_shown(result)}; a reward is a number in [0, 1]")
    if critique is not None and not isinstance(critique, str):
        raise GraderError(f"it returned {_shown(critique)} as its critique, which is no text")
    return Grade(float(reward), critique)


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:80]}..."  # noqa: PLR2004 - one line of an error
