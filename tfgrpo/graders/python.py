"""A function of this program as a grader, called as `function(answer, reference, *, task, trajectory)`.

The function is given what it names and nothing else. It runs in this process: what it does is the user's own. A plain
function runs in a thread, so that nobody waits for it; one that never returns keeps its thread until the program ends.
A function that is only named runs in a process of its own (`graders.named`).
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tfgrpo.errors import GraderError, UsageError
from tfgrpo.graders.verdict import Grade, checked
from tfgrpo.types import Rollout, Task

KNOWN: Final = ("answer", "reference", "task", "trajectory")
AT_ONCE: Final = 8
SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class PythonGrader:
    """Calls `function` with those of `KNOWN` that are in `takes`, some at once, each for `seconds` at most.

    A function may do without a reference; it is given None for a task that has no right answer.
    """

    name: str
    function: Callable[..., Any]
    takes: tuple[str, ...]
    seconds: float = SECONDS
    needs_reference: bool = False
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE), init=False, repr=False)

    @classmethod
    def of(cls, name: str, function: Any, *, seconds: float = SECONDS) -> PythonGrader:
        """Return the grader that calls `function`; UsageError when it cannot be called as a grader is."""
        return cls(name, function, taken(name, function), seconds)

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Call the function. An error in it, no answer in time, or a result that is no reward is a GraderError."""
        offered = {
            "answer": rollout.answer,
            "reference": task.reference,
            "task": task,
            "trajectory": rollout,
        }
        given = {name: offered[name] for name in self.takes}
        async with self._free:
            try:
                result = await asyncio.wait_for(_called(self.function, given), self.seconds)
            except _Raised as error:
                raise GraderError(str(error)) from error.__cause__
            except TimeoutError as error:
                raise GraderError(f"it took longer than {self.seconds:g} s (training.grader_seconds)") from error
        return checked(result)

    async def close(self) -> None:
        """Nothing is held."""


class _Raised(Exception):  # noqa: N818 - tells an error of the function from one of waiting for it
    """The function raised its cause."""


async def _called(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Return what the function returns, or raise `_Raised` from what it raised."""
    try:
        if inspect.iscoroutinefunction(function):
            return await function(**given)
        result = await _in_thread(function, given)
        return await result if inspect.isawaitable(result) else result
    except Exception as error:  # what a user's function raises cannot be known
        raise _Raised(f"{type(error).__name__}: {error}") from error


def _in_thread(function: Callable[..., Any], given: dict[str, Any]) -> asyncio.Future[Any]:
    """Return the future result of a call in a thread of its own, for whose end the program does not wait."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(error: BaseException | None, result: Any) -> None:
        if future.done():
            return  # given up in the meantime
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def work() -> None:
        error, result = None, None
        try:
            result = function(**given)
        except BaseException as raised:  # noqa: BLE001 - a thread that ends silently would look like one that hangs
            # What would end a loop or the program if it were raised where it is waited for.
            odd = isinstance(raised, StopIteration) or not isinstance(raised, Exception)
            error = RuntimeError(repr(raised)) if odd else raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, error, result)

    threading.Thread(target=work, name="grader", daemon=True).start()
    return future


def taken(name: str, function: Any) -> tuple[str, ...]:
    """Return those of `KNOWN` that a function takes; UsageError when it cannot be called as a grader is."""
    if not callable(function):
        raise UsageError(f"the grader {name!r} is no function", field="grader")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise UsageError(f"the grader {name!r} does not say what it takes: {error}", field="grader") from error
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return KNOWN
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    strange = [p.name for p in parameters if p.name not in KNOWN and p.default is p.empty]
    if strange:
        raise UsageError(
            f"the grader {name!r} asks for {', '.join(strange)}; it can be given {', '.join(KNOWN)}", field="grader"
        )
    return tuple(p.name for p in named if p.name in KNOWN)
