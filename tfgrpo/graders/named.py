"""A grader that the user names: `python:module:function`, which runs in processes of its own (`checks.functions`).

There is one process as long as it keeps up, and more, up to `AT_ONCE`, where rollouts wait: a function may wait for
another program, or import for seconds. One that is killed or kills itself leaves its rollout unjudged, and no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from tfgrpo import user_functions
from tfgrpo.errors import UsageError
from tfgrpo.graders.apart import LIMIT, graded
from tfgrpo.graders.python import AT_ONCE, SECONDS, taken
from tfgrpo.graders.verdict import Grade
from tfgrpo.processes import Pool, Process
from tfgrpo.types import Rollout, Task
from tfgrpo.user_functions import Unloadable

PREFIX: Final = "python:"
PATIENCE: Final = 0.5
"""Seconds that a rollout waits for each process that there is: as long as a start takes."""


@dataclass(slots=True)
class NamedGrader:
    """Has the function judge with those of `graders.python.KNOWN` that are in `takes`, for `seconds` at most."""

    name: str
    takes: tuple[str, ...]
    seconds: float = SECONDS
    needs_reference: bool = False
    _pool: Pool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._pool = Pool(self._made, AT_ONCE, PATIENCE)

    @classmethod
    def load(cls, name: str, *, seconds: float = SECONDS) -> NamedGrader:
        """Import the function of `python:module:function`, to look at it; UsageError says what is wrong with it."""
        module, _, function_name = name.removeprefix(PREFIX).partition(":")
        if not module or not function_name:
            raise UsageError(f"{name!r} must read python:module:function", field="grader")
        try:
            function = user_functions.find(module, function_name)
        except Unloadable as error:
            raise UsageError(f"the grader {name!r} cannot be loaded: {error}", field="grader") from error
        return cls(name, taken(name, function), seconds)

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Call the function. An error in it, no answer in time, or a result that is no reward is a GraderError."""
        objects: dict[str, Any] = {"task": task, "trajectory": rollout}
        plain = {name: msgspec.to_builtins(objects[name], enc_hook=str) for name in self.takes if name in objects}
        return await graded(self._pool, rollout.answer, task.reference, plain)

    async def close(self) -> None:
        """End the processes."""
        await self._pool.close()

    def _made(self) -> Process:
        module, _, function = self.name.removeprefix(PREFIX).partition(":")
        arguments = {"module": module, "function": function, "takes": self.takes}
        what = f"the grader {self.name}"
        return Process(what, "tfgrpo.checks.functions", self.seconds, LIMIT, arguments, heard=True)
