"""A grader whose failures are counted. What it cannot judge stays unjudged: no reward is made up for it.

One rollout that a grader fails on is a result; a grader that fails on everything is broken and stops the run.
"""

from __future__ import annotations

from tfgrpo.errors import GraderError
from tfgrpo.graders.verdict import Grade, Grader
from tfgrpo.types import Rollout, Task

PATIENCE = 16
"""So many failures, and not one judgement, are taken for a grader that is broken."""


class Counting:
    """Wraps `grader`. `judged` and `failed` count rollouts, `first` says what went wrong first, with the task."""

    def __init__(self, grader: Grader) -> None:
        self._grader = grader
        self.judged = 0
        self.failed = 0
        self.first = ""

    @property
    def name(self) -> str:
        """The grader's name."""
        return self._grader.name

    @property
    def needs_reference(self) -> bool:
        """Whether a task must carry the right answer."""
        return self._grader.needs_reference

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Return the grade, or one without a reward where the grader fails.

        Raises:
            GraderError: it has failed often and never judged.
        """
        try:
            grade = await self._grader.grade(task, rollout)
        except GraderError as error:
            self.failed += 1
            self.first = self.first or f"the grader {self.name} failed on {_named(task)}: {error}"
            if self.failed >= PATIENCE:
                self.check()
            return Grade(None)
        self.judged += 1
        return grade

    async def close(self) -> None:
        """Close the grader."""
        await self._grader.close()

    def check(self) -> None:
        """Raise GraderError when there were rollouts and none could be judged."""
        if self.failed and not self.judged:
            raise GraderError(f"{self.first} (none of {self.failed} rollouts could be judged)")

    def report(self) -> str | None:
        """Return what to tell when some rollouts could not be judged."""
        if not self.failed:
            return None
        return (
            f"{self.failed} of {self.failed + self.judged} rollouts could not be judged and are left out; {self.first}"
        )


def _named(task: Task) -> str:
    question = " ".join(task.question.split())
    return repr(question if len(question) <= 60 else f"{question[:60]}...")  # noqa: PLR2004 - one line
