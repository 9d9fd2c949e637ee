"""Judging in a process of its own, which is killed when it takes too long and started anew for the next question.

For judgements that nobody can bound: a pattern may backtrack for years, algebra may never end, and neither lets go of
the interpreter. The process is `python -m MODULE`, and `checks.serving` is its side. Both speak JSON, a line each way.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from tfgrpo.errors import GraderError, UsageError
from tfgrpo.graders.verdict import Grade, checked
from tfgrpo.types import Rollout, Task

JSON: TypeAlias = dict[str, Any]

START: Final = 60.0
"""Seconds that a process may take until it is ready: it imports what it needs."""

LINE: Final = 16 << 20
"""Bytes of an answer: six times the longest critique, for JSON may need as many for a character, and more."""

ENVIRONMENT: Final[Mapping[str, str]] = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
"""The same order of sets in every process; and one thread, for each takes address space, which is limited."""


@dataclass(slots=True)
class Apart:
    """A grader whose judgement is a process's, `seconds` long at most; one rollout is judged at a time."""

    name: str
    module: str
    seconds: float
    needs_reference: bool = True
    arguments: JSON = field(default_factory=dict)
    _process: Process = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._process = Process(f"the grader {self.name}", self.module, self.seconds, arguments=self.arguments)

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Have one rollout judged; the errors are those of `Process.ask`."""
        return checked(await self._process.ask(rollout.answer, task.reference, task.metadata))

    async def close(self) -> None:
        """End the process."""
        await self._process.close()


@dataclass(slots=True)
class Process:
    """A process `python -m MODULE`, told `arguments` once, that answers one question at a time, each in `seconds`.

    `what` is what it is called in errors, `limit` the setting that those name which tell of the time. `heard`: what it
    prints goes to our own standard error.
    """

    what: str
    module: str
    seconds: float
    limit: str = "training.grader_seconds"
    arguments: JSON = field(default_factory=dict)
    heard: bool = False
    _process: asyncio.subprocess.Process | None = field(default=None, init=False, repr=False)
    _all: list[asyncio.subprocess.Process] = field(default_factory=list, init=False, repr=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    async def ask(self, answer: str | None, reference: str | None, metadata: Mapping[str, object]) -> Any:
        """Return what the process makes of one question. The time of a question begins with its turn.

        Raises:
            GraderError: the process took too long, ended, or failed on this question.
            UsageError: it cannot use the arguments.
        """
        async with self._turn:
            said = await self._said({"answer": answer, "reference": reference, "metadata": dict(metadata)})
        if "error" in said:
            raise GraderError(str(said["error"]))
        return said.get("result")

    async def close(self) -> None:
        """End the process."""
        self._process = None
        for process in self._all:
            _kill(process)
            await process.wait()
        self._all.clear()

    async def _said(self, asked: JSON) -> JSON:
        process = self._process or await self._started()
        # Until it has answered this question it is of no use for another.
        self._process = None
        try:
            said = await asyncio.wait_for(_exchange(process, asked), self.seconds)
            self._process = process
        except TimeoutError as error:
            raise GraderError(f"it took longer than {self.seconds:g} s ({self.limit})") from error
        except ValueError as error:
            raise GraderError("its process answered what cannot be read") from error
        except (OSError, EOFError) as error:
            raise GraderError(f"its process ended before it had answered{await _how(process)}") from error
        finally:
            if self._process is None:
                _kill(process)
        return said

    async def _started(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", self.module),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if self.heard else asyncio.subprocess.DEVNULL,
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join([_root(), *filter(None, sys.path)])},
            limit=LINE,
        )
        # `close` ends it, whatever happens here.
        self._all = [*(one for one in self._all if one.returncode is None), process]
        try:
            ready = await asyncio.wait_for(_exchange(process, {**self.arguments, "seconds": self.seconds}), START)
        except (TimeoutError, OSError, EOFError) as error:
            raise UsageError(f"the process of {self.what} does not start", field="grader") from error
        if "error" in ready:
            raise UsageError(f"{self.what}: {ready['error']}", field="grader")
        return process


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()


async def _how(process: asyncio.subprocess.Process) -> str:
    """Return how a process ended that has closed its side, in words behind a sentence."""
    with suppress(TimeoutError):
        code = await asyncio.wait_for(process.wait(), 1.0)
        return f": exit status {code}" if code >= 0 else f": killed by signal {-code} ({signal.strsignal(-code)})"
    return ""


async def _exchange(process: asyncio.subprocess.Process, message: JSON) -> JSON:
    """Send one line and return the one that answers it. Raises EOFError where there is none."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message, default=str).encode() + b"\n")
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    said: JSON = json.loads(line)
    return said


def _root() -> str:
    return str(Path(__file__).parents[2])
