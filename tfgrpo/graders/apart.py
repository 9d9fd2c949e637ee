"""Judging in processes of their own (`processes`): what they say as a grade, what they fail on as a grader's error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tfgrpo.errors import GraderError
from tfgrpo.graders.verdict import Grade, checked
from tfgrpo.processes import JSON, NoAnswer, Pool, Process
from tfgrpo.types import Rollout, Task

LIMIT: Final = "training.grader_seconds"
"""The setting of the longest judgement."""


@dataclass(slots=True)
class Apart:
    """A grader whose judgement is a process's, `seconds` long at most; one rollout is judged at a time."""

    name: str
    module: str
    seconds: float
    needs_reference: bool = True
    arguments: JSON = field(default_factory=dict)
    _process: Process = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._process = Process(f"the grader {self.name}", self.module, self.seconds, LIMIT, self.arguments)

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Have one rollout judged; the errors are those of `graded`."""
        return await graded(self._process, rollout.answer, task.reference, task.metadata)

    async def close(self) -> None:
        """End the process."""
        await self._process.close()


async def graded(judging: Process | Pool, *question: Any) -> Grade:
    """Return what a process makes of a question as a grade.

    Raises:
        GraderError: it took too long, ended, failed on this question, or gave no grade.
        UsageError: it cannot judge anything.
    """
    try:
        return checked(await judging.ask(*question))
    except NoAnswer as error:
        raise GraderError(str(error)) from error
