"""A user's own agent, as `python:module:function(task, base_url, headers) -> answer`: looked at, called with a limit.

It runs in processes of its own (`checks.agents`). It knows no store, no library and no reward.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from tfgrpo import user_functions
from tfgrpo.errors import UsageError
from tfgrpo.processes import Pool, Process
from tfgrpo.types import Task
from tfgrpo.user_functions import Unloadable

PREFIX: Final = "python:"


@dataclass(slots=True)
class Agent:
    """A function that does a task by calling the models behind `base_url` with `headers` on each request.

    It does `at_once` tasks at most at a time, each in `seconds`. Nobody waits for a process while one more may be
    started: an agent waits for models, not for processors.
    """

    name: str
    seconds: float = 600.0
    at_once: int = 8
    _pool: Pool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._pool = Pool(self._made, self.at_once)

    @classmethod
    def load(cls, name: str, *, seconds: float = 600.0, at_once: int = 8) -> Agent:
        """Import the function of `python:module:function`, to look at it.

        Raises:
            UsageError: it cannot be loaded, with where was looked, or is no such function.
        """
        module_name, _, function_name = name.removeprefix(PREFIX).partition(":")
        if not name.startswith(PREFIX) or not module_name or not function_name:
            raise UsageError(f"there is no runner {name!r}; it is chat or python:module:function", field="runner")
        try:
            function = user_functions.find(module_name, function_name)
        except Unloadable as error:
            where = f"looked in {Path.cwd()} and in the packages of {sys.prefix}"
            raise UsageError(f"the agent {name!r} cannot be loaded: {error}; {where}", field="runner") from error
        if not callable(function) or not _takes_three(function):
            raise UsageError(f"the agent {name!r} must be a function of (task, base_url, headers)", field="runner")
        return cls(name, seconds, at_once)

    async def answer(self, task: Task, base_url: str, headers: Mapping[str, str]) -> str:
        """Return what the agent answers.

        Raises:
            NoAnswer: it raised, took too long, ended its process or returned no text.
            UsageError: its process does not start.
        """
        answer: str = await self._pool.ask(msgspec.to_builtins(task, enc_hook=str), base_url, dict(headers))
        return answer

    async def close(self) -> None:
        """End its processes."""
        await self._pool.close()

    def _made(self) -> Process:
        module, _, function = self.name.removeprefix(PREFIX).partition(":")
        return Process(
            f"the agent {self.name}",
            "tfgrpo.checks.agents",
            self.seconds,
            arguments={"module": module, "function": function},
            it="the agent",
            heard=True,
        )


def _takes_three(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None, None)
    except (TypeError, ValueError):
        return False
    return True
