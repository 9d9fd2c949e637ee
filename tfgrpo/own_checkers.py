"""Tasks that bring their own checker, among tasks that do not: each is judged by whom it is due to."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfgrpo import gym
from tfgrpo.errors import UsageError
from tfgrpo.graders.apart import graded
from tfgrpo.graders.python import SECONDS
from tfgrpo.graders.verdict import Grade, Grader
from tfgrpo.gym import Family
from tfgrpo.processes import Process
from tfgrpo.types import Rollout, Task

NAME = "reasoning-gym"


@dataclass(slots=True)
class Own:
    """Has tasks of reasoning-gym judged by their family, `seconds` each at most, and all others by `other`."""

    other: Grader | None = None
    seconds: float = SECONDS
    _processes: dict[Family, Process] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """The name of the grader of all other tasks, where there is one."""
        return NAME if self.other is None else self.other.name

    @property
    def needs_reference(self) -> bool:
        """Whether the other tasks must carry the right answer."""
        return self.other is not None and self.other.needs_reference

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Return the grade; UsageError for a task without a checker where no grader is named for such."""
        found = gym.origin(task)
        if found is not None:
            family, index = found
            if family not in self._processes:
                self._processes[family] = family.process(judge=True, seconds=self.seconds)
            return await graded(self._processes[family], rollout.answer, task.question, {"index": index})
        if self.other is None:
            raise UsageError("there are tasks that bring no checker of their own: name a grader too", field="grader")
        return await self.other.grade(task, rollout)

    async def close(self) -> None:
        """Let go of everything."""
        for process in self._processes.values():
            await process.close()
        if self.other is not None:
            await self.other.close()
