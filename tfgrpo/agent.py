"""A user's own agent, as `python:module:function(task, base_url, headers) -> answer`: loaded, and called with a limit.

The function runs in this process: what it does is the user's own. It knows no store, no library and no reward.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tfgrpo.errors import UsageError
from tfgrpo.types import Task

PREFIX: Final = "python:"


class AgentFailed(Exception):  # noqa: N818 - reads as what it says where it is caught
    """The agent gave no answer: it raised, took too long or returned no text. The message says which."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A function that does a task by calling the models behind `base_url` with `headers` on each request."""

    name: str
    function: Callable[..., Any]

    @classmethod
    def load(cls, name: str) -> Agent:
        """Import the function of `python:module:function`; UsageError says what is wrong, and where was looked."""
        module_name, _, function_name = name.removeprefix(PREFIX).partition(":")
        if not name.startswith(PREFIX) or not module_name or not function_name:
            raise UsageError(f"there is no runner {name!r}; it is chat or python:module:function", field="runner")
        # An agent usually lies beside the data; a console script does not look there by itself.
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        try:
            function = getattr(importlib.import_module(module_name), function_name)
        except Exception as error:  # what importing a user's module raises cannot be known
            said = " ".join(f"{type(error).__name__}: {error}".split())
            where = f"looked in {here} and in the packages of {sys.prefix}"
            raise UsageError(f"the agent {name!r} cannot be loaded: {said}; {where}", field="runner") from error
        if not callable(function) or not _takes_three(function):
            raise UsageError(f"the agent {name!r} must be a function of (task, base_url, headers)", field="runner")
        return cls(name, function)

    async def answer(self, task: Task, base_url: str, headers: Mapping[str, str], *, seconds: float) -> str:
        """Return what the agent answers: awaited when it is async, else called in a thread of its own.

        A thread cannot be ended from outside. One that takes too long is left to itself, and does not hold up the end
        of the program.

        Raises:
            AgentFailed: it raised, took longer than `seconds`, or returned no text.
        """
        arguments = (task, base_url, dict(headers))
        try:
            async with asyncio.timeout(seconds) as limit:
                if inspect.iscoroutinefunction(self.function):
                    answer = await self.function(*arguments)
                else:
                    answer = await _in_thread(lambda: self.function(*arguments))
                if inspect.isawaitable(answer):
                    answer = await answer
        except Exception as error:  # what a user's function raises cannot be known
            if limit.expired():
                raise AgentFailed(f"the agent took longer than {seconds:g} s") from error
            raise AgentFailed(f"the agent raised {' '.join(f'{type(error).__name__}: {error}'.split())}") from error
        if not isinstance(answer, str):
            raise AgentFailed(f"the agent returned {type(answer).__name__}; an answer is a text")
        return answer


def _takes_three(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None, None)
    except (TypeError, ValueError):
        return False
    return True


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Return what `work` returns in a daemon thread: the event loop's own threads are waited for at its end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def deliver(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def run() -> None:
        result, failed = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - an agent that calls sys.exit() has failed as well
            failed = error
        # Where the loop is closed nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, result, failed)

    threading.Thread(target=run, name="agent", daemon=True).start()
    result, error = await done
    if error is not None:
        # On the event loop only an `Exception` is one rollout's matter; sys.exit() in an agent must not end the run.
        raise error if isinstance(error, Exception) else RuntimeError(repr(error))
    return result
