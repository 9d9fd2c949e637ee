"""Work in a process of its own, which is killed when it takes too long and started anew for the next question.

For what nobody can bound: a pattern may backtrack for years, algebra may never end, a user's function may do anything.
The process is `python -m MODULE`, and `checks.serving` is its side. Both speak JSON, a line each way.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from tfgrpo.errors import UsageError

JSON: TypeAlias = dict[str, Any]

START: Final = 300.0
"""Seconds that a process may take until it is ready: it imports what it needs, and others may start beside it."""

LINE: Final = 16 << 20
"""Bytes of an answer: six times the longest critique, for JSON may need as many for a character, and more."""

ORDER: Final[Mapping[str, str]] = {"PYTHONHASHSEED": "0"}
"""The same order of sets in every process."""

THREADS: Final[Mapping[str, str]] = {"OPENBLAS_NUM_THREADS": "1"}
"""One, for each takes address space, which is limited where the work is our own."""

_BEGIN: Final = (
    "import json, runpy, sys\n"
    "module, path, root = sys.argv.pop(1), json.loads(sys.argv.pop(1)), sys.argv.pop(1)\n"
    "sys.path[:] = [root, *path]\n"
    "import tfgrpo\n"
    "sys.path[:] = path\n"
    "runpy.run_module(module, run_name='__main__', alter_sys=True)\n"
)
"""`python -m MODULE` with our own path, and our own package first. PYTHONPATH would reach what a user's function
starts, which may be another Python."""


class NoAnswer(Exception):  # noqa: N818 - reads as what it says where it is caught
    """A process took too long, ended, or failed on a question. The message says which."""


@dataclass(slots=True)
class Process:
    """A process `python -m MODULE`, told `arguments` once, that answers one question at a time, each in `seconds`.

    `what` is what it is called where it cannot be started, `it` where it does not answer, with the setting `limit`
    where that was the time. `heard`: a user's own; what it prints goes to our standard error.
    """

    what: str
    module: str
    seconds: float
    limit: str | None = None
    arguments: JSON = field(default_factory=dict)
    it: str = "it"
    heard: bool = False
    _process: asyncio.subprocess.Process | None = field(default=None, init=False, repr=False)
    _all: list[asyncio.subprocess.Process] = field(default_factory=list, init=False, repr=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    async def ask(self, *question: Any) -> Any:
        """Return what the process makes of one question. The time of a question begins with its turn.

        Raises:
            NoAnswer: the process took too long, ended, or failed on this question.
            UsageError: it does not start, or cannot use the arguments.
        """
        async with self._turn:
            said = await self._said(question)
        if "error" in said:
            raise NoAnswer(str(said["error"]))
        return said.get("result")

    async def close(self) -> None:
        """End the process."""
        self._process = None
        for process in self._all:
            _kill(process)
            await process.wait()
        self._all.clear()

    async def _said(self, question: tuple[Any, ...]) -> JSON:
        process = self._process or await self._started()
        # Until it has answered this question it is of no use for another.
        self._process = None
        try:
            said = await asyncio.wait_for(_exchange(process, question), self.seconds)
            self._process = process
        except TimeoutError as error:
            named = f" ({self.limit})" if self.limit else ""
            raise NoAnswer(f"{self.it} took longer than {self.seconds:g} s{named}") from error
        except ValueError as error:
            raise NoAnswer(f"{self.it} answered what cannot be read") from error
        except (OSError, EOFError) as error:
            raise NoAnswer(f"{self.it} ended before it had answered{await _how(process)}") from error
        finally:
            if self._process is None:
                _kill(process)
        return said

    async def _started(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-c", _BEGIN, self.module, json.dumps([*filter(None, sys.path)]), _root()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if self.heard else asyncio.subprocess.DEVNULL,
            env={**os.environ, **ORDER, **({} if self.heard else THREADS)},
            limit=LINE,
            # What it starts itself ends with it, and Ctrl-C is for this program.
            start_new_session=True,
        )
        # `close` ends it, whatever happens here.
        self._all = [*(one for one in self._all if one.returncode is None), process]
        try:
            ready = await asyncio.wait_for(_exchange(process, {**self.arguments, "seconds": self.seconds}), START)
        except (TimeoutError, OSError, EOFError) as error:
            raise UsageError(f"the process of {self.what} does not start") from error
        if "error" in ready:
            raise UsageError(f"{self.what}: {ready['error']}")
        return process


@dataclass(slots=True)
class Pool:
    """Processes that `make` makes, `at_once` at most, of which each question gets one for itself.

    A question waits `patience` seconds for each process that there is before another is made.
    """

    make: Callable[[], Process]
    at_once: int
    patience: float = 0.0
    _processes: list[Process] = field(default_factory=list, init=False, repr=False)
    _idle: asyncio.LifoQueue[Process] = field(default_factory=asyncio.LifoQueue, init=False, repr=False)

    async def ask(self, *question: Any) -> Any:
        """Return what one of the processes makes of a question; the errors are those of `Process.ask`."""
        process = await self._free()
        try:
            return await process.ask(*question)
        finally:
            self._idle.put_nowait(process)

    async def close(self) -> None:
        """End the processes; asking again starts them anew."""
        for process in self._processes:
            await process.close()

    async def _free(self) -> Process:
        while (there := len(self._processes)) > 0:
            with suppress(asyncio.QueueEmpty):
                return self._idle.get_nowait()
            patience = self.patience * there if there < self.at_once else None
            try:
                return await asyncio.wait_for(self._idle.get(), patience)
            except TimeoutError:
                if len(self._processes) == there:
                    break  # nobody else has had one made meanwhile
        self._processes.append(self.make())
        return self._processes[-1]


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a process with all that it has started, unless it has ended itself."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


async def _how(process: asyncio.subprocess.Process) -> str:
    """Return how a process ended that has closed its side, in words behind a sentence."""
    with suppress(TimeoutError):
        code = await asyncio.wait_for(process.wait(), 1.0)
        return f": exit status {code}" if code >= 0 else f": killed by signal {-code} ({signal.strsignal(-code)})"
    return ""


async def _exchange(process: asyncio.subprocess.Process, message: Any) -> JSON:
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
    return str(Path(__file__).parents[1])
