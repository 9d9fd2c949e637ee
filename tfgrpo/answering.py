"""A runner whose failed rollouts are counted: one that gives no answer is a result, none at all is a broken model.

It stops a run whose rollouts all fail before the run has paid for, or waited for, all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tfgrpo.errors import ModelError
from tfgrpo.rollouts import Prior, Runner, Sampling
from tfgrpo.types import Rollout, Task

PATIENCE: Final = 16
"""So many failures, and not one answer, are taken for a model that gives none."""


class Answering:
    """Wraps `runner`. `answered` and `failed` count rollouts, `first` is the first error."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.answered = 0
        self.failed = 0
        self.first = ""

    @property
    def model(self) -> str:
        """The policy model's name."""
        return self._runner.model

    async def run(
        self, tasks: Sequence[Task], prior: Prior, *, samples: int, sampling: Sampling
    ) -> list[tuple[Rollout, ...]]:
        """Return the runner's rollouts; ModelError when many failed so far and none gave an answer."""
        made = await self._runner.run(tasks, prior, samples=samples, sampling=sampling)
        for rollout in (one for rollouts in made for one in rollouts):
            self.answered += rollout.error is None
            self.failed += rollout.error is not None
            self.first = self.first or rollout.error or ""
        if self.failed >= PATIENCE:
            self.check()
        return made

    def check(self) -> None:
        """Raise ModelError when there were rollouts and none gave an answer."""
        if self.failed and not self.answered:
            raise ModelError(f"none of {self.failed} rollouts gave an answer; the first error: {self.first}")

    def report(self) -> str | None:
        """Return what to tell when some rollouts gave no answer."""
        if not self.failed:
            return None
        return (
            f"{self.failed} of {self.failed + self.answered} rollouts gave no answer and count as 0; the first error: "
            f"{self.first}"
        )
