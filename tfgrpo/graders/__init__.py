"""Graders: from an answer to a reward. `by_name` and `configured` find one; each module holds one kind.

A grader knows the task and the rollout it is given and nothing else. What it holds on to (a process, a model) it takes
up with its first rollout and lets go when it is closed.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from typing import Any, Final

from tfgrpo.checks import text
from tfgrpo.configuration import GraderSettings
from tfgrpo.datasets import ALSO_RIGHT
from tfgrpo.errors import UsageError
from tfgrpo.graders.apart import Apart
from tfgrpo.graders.judge import Judge
from tfgrpo.graders.named import PREFIX, NamedGrader
from tfgrpo.graders.python import SECONDS
from tfgrpo.graders.verdict import Grade as Grade
from tfgrpo.graders.verdict import Grader as Grader
from tfgrpo.types import Rollout, Task

NAMES: Final = ("exact", "number", "regex", "math", "json_schema", "judge", "python:module:function")

_TAKES: Final = {
    "regex": frozenset({"pattern"}),
    "json_schema": frozenset({"json_schema"}),
    "judge": frozenset({"rubric", "model", "temperature"}),
}
"""The arguments that each grader takes, by name; none where it is not named."""


@dataclass(frozen=True, slots=True)
class TextGrader:
    """Compares the answer with the reference by one of the functions of `text`."""

    name: str
    compare: text.Comparison
    needs_reference: bool = True

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Return 1.0 or 0.0; where a task has several right answers, each of them is one."""
        also: Any = task.metadata.get(ALSO_RIGHT, ())
        right = any(self.compare(rollout.answer, one) for one in (task.reference or "", *also))
        return Grade(1.0 if right else 0.0)

    async def close(self) -> None:
        """Nothing is held."""


def by_name(name: str) -> Grader:
    """Return the grader of this name without arguments; UsageError when there is none."""
    return configured(GraderSettings(name=name))


def configured(settings: GraderSettings, *, seconds: float = SECONDS) -> Grader:
    """Return a grader with its arguments; one that might not end is given up after so many seconds.

    Raises:
        UsageError: there is no such grader, an argument is missing, broken or not one of its, or what it needs is not
            installed.
    """
    name = settings.name
    given = {key for key in settings.model_fields_set - {"name"} if getattr(settings, key) is not None}
    if strange := sorted(given - _TAKES.get(name, frozenset())):
        raise UsageError(f"the grader {name} takes no {_spelt(strange[0])}", field="training.grader")
    if name.startswith(PREFIX):
        return NamedGrader.load(name, seconds=seconds)
    if name in text.COMPARISONS:
        return TextGrader(name, text.COMPARISONS[name])
    match name:
        case "regex":
            arguments = _given(pattern=settings.pattern)
            return Apart(name, "tfgrpo.checks.patterns", seconds, not arguments, arguments)
        case "json_schema":
            arguments = _given(schema=_schema(settings))
            return Apart(name, "tfgrpo.checks.schemas", seconds, not arguments, arguments)
        case "math":
            require("math_verify", extra="math", what="the grader math")
            return Apart(name, "tfgrpo.checks.mathematics", seconds)
        case "judge":
            return _judge(settings)
    raise UsageError(f"there is no grader {name!r}; graders are {', '.join(NAMES)}", field="grader")


def require(module: str, *, extra: str, what: str) -> None:
    """Raise UsageError, which says how to install it, when a package of an extra is not there."""
    if importlib.util.find_spec(module) is None:
        raise UsageError(f"{what} needs a package that is not installed: pip install 'tfgrpo-proxy[{extra}]'")


def _judge(settings: GraderSettings) -> Judge:
    if not settings.rubric or not settings.rubric.strip():
        raise UsageError(
            'the grader judge needs a rubric: set training.grader to {name: judge, rubric: "..."}',
            field="training.grader.rubric",
        )
    return Judge(settings.rubric.strip(), temperature=settings.temperature or 0.0)


def _schema(settings: GraderSettings) -> Any:
    given = settings.json_schema
    if given is None or isinstance(given, dict):
        return given
    try:
        return json.loads(given.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the schema {given} cannot be read: {error}", field="training.grader.schema") from error


def _given(**arguments: Any) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value is not None}


def _spelt(argument: str) -> str:
    return "schema" if argument == "json_schema" else argument
