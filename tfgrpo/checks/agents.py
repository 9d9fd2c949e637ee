"""The process of a user's own agent: it calls `function(task, base_url, headers)`.

A process of its own, because what an agent does cannot be known: it may end the process it runs in, or never return.
It does one task at a time; where it is a coroutine, all its calls share an event loop.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from typing import Any

import msgspec

from tfgrpo.checks.serving import JSON, Work, serve
from tfgrpo.types import Task


def prepare(arguments: JSON) -> Work:
    """Return what calls `function` of `module`."""
    function = getattr(importlib.import_module(arguments["module"]), arguments["function"])
    loop = asyncio.Runner()

    async def waited(answer: Any) -> Any:
        return await answer

    def answered(task: JSON, base_url: str, headers: dict[str, str]) -> str:
        try:
            answer = function(msgspec.convert(task, Task), base_url, headers)
            if inspect.isawaitable(answer):
                answer = loop.run(waited(answer))
        except Exception as error:  # what a user's function raises cannot be known
            raise ValueError(f"the agent raised {type(error).__name__}: {error}") from error
        except BaseException as error:  # sys.exit() in an agent has failed on one rollout
            raise ValueError(f"the agent raised {error!r}") from error
        if not isinstance(answer, str):
            raise ValueError(f"the agent returned {type(answer).__name__}; an answer is a text")  # noqa: TRY004 - said as it stands
        return answer

    return answered


if __name__ == "__main__":
    serve(prepare, bounded=False)
