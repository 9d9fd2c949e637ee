"""A grader that the user wrote: `python:module:function`, called as `function(answer, reference, *, task, trajectory)`.

The function is given what it names and nothing else. It runs in this process: what it does is the user's own.
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tfgrpo.errors import UsageError
from tfgrpo.graders.verdict import Grade
from tfgrpo.types import Rollout, Task

PREFIX: Final = "python:"
KNOWN: Final = ("answer", "reference", "task", "trajectory")


@dataclass(frozen=True, slots=True)
class PythonGrader:
    """Calls `function` with those of `KNOWN` that are in `takes`."""

    name: str
    function: Callable[..., Any]
    takes: tuple[str, ...]

    @classmethod
    def load(cls, name: str) -> PythonGrader:
        """Import the function of `python:module:function`; UsageError says what is wrong with it."""
        module_name, _, function_name = name.removeprefix(PREFIX).partition(":")
        if not module_name or not function_name:
            raise UsageError(f"{name!r} must read python:module:function", field="grader")
        # A grader usually lies beside the data; a console script does not look there by itself.
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
        try:
            function = getattr(importlib.import_module(module_name), function_name)
        except (ImportError, AttributeError, SyntaxError) as error:
            raise UsageError(f"the grader {name!r} cannot be loaded: {error}", field="grader") from error
        return cls.of(name, function)

    @classmethod
    def of(cls, name: str, function: Any) -> PythonGrader:
        """Return the grader that calls `function`; UsageError when it cannot be called so."""
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise UsageError(f"the grader {name!r} is no plain function", field="grader")
        return cls(name, function, _takes(name, function))

    @property
    def needs_reference(self) -> bool:
        """A function may do without; it is given None for a task that has no right answer."""
        return False

    def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Call the function; an error in it, or a result that is no reward, is a UsageError."""
        offered = {
            "answer": rollout.answer,
            "reference": task.reference,
            "task": task,
            "trajectory": rollout,
        }
        try:
            result = self.function(**{name: offered[name] for name in self.takes})
        except Exception as error:  # what a user's function raises cannot be known
            said = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"the grader {self.name} failed on {task.question[:60]!r}: {said}", field="grader"
            ) from error
        return _grade(self.name, result)


def _takes(name: str, function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return KNOWN
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    strange = [p.name for p in parameters if p.name not in KNOWN and p.default is p.empty]
    if strange:
        raise UsageError(
            f"the grader {name!r} asks for {', '.join(strange)}; it can be given {', '.join(KNOWN)}", field="grader"
        )
    return tuple(p.name for p in named if p.name in KNOWN)


def _grade(name: str, result: Any) -> Grade:
    reward, critique = result if isinstance(result, tuple) and len(result) == 2 else (result, None)  # noqa: PLR2004 - a pair
    if not isinstance(reward, bool | int | float) or not math.isfinite(reward) or not 0 <= reward <= 1:
        raise UsageError(f"the grader {name} returned {result!r}; a reward is a number in [0, 1]", field="grader")
    if critique is not None and not isinstance(critique, str):
        raise UsageError(f"the grader {name} returned a critique that is no text", field="grader")
    return Grade(float(reward), critique)
