"""The process of a grader that the user wrote: it calls `function(answer, reference, *, task, trajectory)`.

A process of its own, because what a user's function does cannot be known: it may end the process it runs in, or never
return. It is asked one thing at a time; where it is a coroutine, all its calls share an event loop.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from typing import Any

import msgspec

from tfgrpo.checks.results import judged
from tfgrpo.checks.serving import JSON, Judgement, serve
from tfgrpo.types import Rollout, Task


def prepare(arguments: JSON) -> Judgement:
    """Return what calls `function` of `module` with those of its parameters that `takes` names."""
    function = getattr(importlib.import_module(arguments["module"]), arguments["function"])
    takes, loop = frozenset(arguments["takes"]), asyncio.Runner()

    async def waited(result: Any) -> Any:
        return await result

    def called(answer: str, reference: str | None, objects: JSON) -> tuple[float, str | None]:
        given: dict[str, Any] = {"answer": answer, "reference": reference}
        if "task" in takes:
            given["task"] = msgspec.convert(objects["task"], Task)
        if "trajectory" in takes:
            given["trajectory"] = msgspec.convert(objects["trajectory"], Rollout)
        try:
            result = function(**{name: given[name] for name in takes})
            if inspect.isawaitable(result):
                result = loop.run(waited(result))
        except Exception as error:  # what a user's function raises cannot be known
            raise ValueError(f"{type(error).__name__}: {error}") from error
        except BaseException as error:  # sys.exit() in a grader has failed on one rollout
            raise ValueError(repr(error)) from error
        return judged(result)

    return called


if __name__ == "__main__":
    serve(prepare, bounded=False)
