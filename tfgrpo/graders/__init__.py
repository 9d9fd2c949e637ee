"""Graders: from an answer to a reward. `by_name` finds one; each module holds one kind.

A grader knows the task and the rollout it is given and nothing else; it calls no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from tfgrpo.errors import UsageError
from tfgrpo.graders import text
from tfgrpo.graders.python import PREFIX, PythonGrader
from tfgrpo.graders.verdict import Grade as Grade
from tfgrpo.types import Rollout, Task

NAMES: Final = ("exact", "number", "regex", "python:module:function")


class Grader(Protocol):
    """Judges one rollout. `needs_reference` says whether a task must carry the right answer."""

    @property
    def needs_reference(self) -> bool:
        """Whether a task must carry the right answer."""

    def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Return the reward in [0, 1], with a critique where there is something to say.

        Raises:
            UsageError: the grader cannot judge this task at all.
        """


@dataclass(frozen=True, slots=True)
class TextGrader:
    """Compares the answer with the reference by one of the functions of `text`."""

    compare: text.Comparison
    needs_reference: bool = True

    def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Return 1.0 or 0.0."""
        return Grade(1.0 if self.compare(rollout.answer, task.reference or "") else 0.0)


def by_name(name: str) -> Grader:
    """Return the grader of this name; UsageError when there is none."""
    if name.startswith(PREFIX):
        return PythonGrader.load(name)
    if name in text.COMPARISONS:
        return TextGrader(text.COMPARISONS[name])
    raise UsageError(f"there is no grader {name!r}; graders are {', '.join(NAMES)}", field="grader")
