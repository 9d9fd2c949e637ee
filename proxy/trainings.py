"""Trains when a person asks for it: what it would cost, then a run, in a process of its own.

What training is, that no two runs meet and how far one is, is the business of `tfgrpo train` and the store. Here it is
a program that is started, watched to its end, and ended when the proxy stops: what it paid for is kept in the memo,
so the same run started again goes on from there. No secret is ever an argument of it: it reads the configuration.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from proxy.errors import ProxyError
from proxy.scheduler import END_SECONDS, tail
from tfgrpo.errors import NotFound, UsageError
from tfgrpo.store import Store

ESTIMATE_SECONDS: Final = 120.0
BEGIN_SECONDS: Final = 120.0
"""How long a run may take to read what it learns from before it is in the store."""

LOOK_SECONDS: Final = 0.25
MOST_ESTIMATES: Final = 1
"""At once in one worker: each is a process that reads the traffic of a set."""

_SAID: Final = "tfgrpo: "

_log = logging.getLogger(__name__)

Source = Literal["traffic", "replay", "dataset"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants trained. `data` is a data set of `Datasets`; `grader` None: as configured."""

    set: str
    source: Source
    data: Path | None = None
    grader: str | None = None
    max_usd: float | None = None
    max_tokens: int | None = None
    seed: int = 0

    @property
    def arguments(self) -> list[str]:
        """The wish on a command line."""
        named = {
            "--set": self.set,
            "--from": self.source,
            "--data": self.data,
            "--grader": self.grader,
            "--max-usd": self.max_usd,
            "--max-tokens": self.max_tokens,
            "--seed": self.seed,
        }
        return [f"{name}={value}" for name, value in named.items() if value is not None]


class Datasets:
    """Data sets that were sent here, one file each, named by what is in it: the same tasks again are the same file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, lines: str) -> str:
        """Write a data set where it is not yet; return its name."""
        content = lines.replace("\r\n", "\n").encode()
        name = hashlib.sha256(content).hexdigest()[:16]
        file = self._file(name)
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(f".{os.getpid()}.new")
            # Tasks may quote users: nobody else on this machine reads them.
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(content)
            new.replace(file)
        return name

    def path(self, name: str) -> Path:
        """Return the file of a data set; NotFound when it is not on this machine."""
        file = self._file(name)
        fits = len(name) == 16 and not set(name) - set("0123456789abcdef")  # noqa: PLR2004 - as long as `keep` makes it
        if not fits or not file.is_file():
            raise NotFound("the data set is not on this machine; send it again")
        return file

    def name_of(self, path: object) -> str | None:
        """Return the name of the data set in a file, None where the file is none of ours."""
        file = Path(str(path))
        return file.stem if file.parent == self._folder and file.is_file() else None

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.jsonl"


class Trainings:
    """The training processes that this worker started. `program` is what is started."""

    def __init__(
        self,
        store: Store,
        *,
        config: Path | None = None,
        program: Sequence[str] = (sys.executable, "-m", "tfgrpo"),
    ) -> None:
        self._store = store
        self._config = ["--config", str(config)] if config is not None else []
        self._program = tuple(program)
        self._running: dict[asyncio.Task[str], Process] = {}
        self._estimating = asyncio.Semaphore(MOST_ESTIMATES)

    async def estimate(self, wish: Wish) -> dict[str, Any]:
        """Return what `tfgrpo estimate` says the wish would cost; UsageError with its own words when it refuses."""
        async with self._estimating:
            process = await self._started(["estimate", "--json", *wish.arguments], stdout=PIPE)
            try:
                async with asyncio.timeout(ESTIMATE_SECONDS):
                    out, said = await process.communicate()
            except TimeoutError:
                raise ProxyError(
                    504,
                    f"the estimate takes longer than {ESTIMATE_SECONDS:.0f} s: `tfgrpo estimate` on the command line "
                    "takes its time",
                    code="too_long",
                ) from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode != 0:
            raise UsageError(_words(said, wish))
        told: dict[str, Any] = json.loads(out)
        return told

    async def start(self, wish: Wish) -> str:
        """Start a run and return its id, once the store has it; UsageError with its own words when it refuses."""
        since = time.time() - 1
        process = await self._started(["train", "--json", *wish.arguments], stdout=DEVNULL)
        _log.info("training of %s started (process %d)", wish.set, process.pid)
        watch = asyncio.create_task(self._watched(process, wish))
        self._running[watch] = process
        watch.add_done_callback(self._running.pop)
        until = time.monotonic() + BEGIN_SECONDS
        while time.monotonic() < until:
            ended = watch.done()
            found = await asyncio.to_thread(self._store.runs.begun_by, socket.gethostname(), process.pid, since=since)
            if found is not None:
                return found
            if ended:
                raise UsageError(watch.result())
            await asyncio.wait({watch}, timeout=LOOK_SECONDS)
        raise ProxyError(
            504, "the run is still reading what it learns from; it will stand in the list", code="too_long"
        )

    async def stop(self) -> None:
        """End every process of ours; what it has paid for is kept."""
        running = dict(self._running)
        for process in running.values():
            process.terminate()
        if running:
            _, slow = await asyncio.wait(running, timeout=END_SECONDS)
            for watch in slow:
                running[watch].kill()
            await asyncio.wait(running)

    async def _started(self, arguments: Sequence[str], *, stdout: int) -> Process:
        command = [*self._program, *arguments, *self._config]
        try:
            return await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=stdout, stderr=PIPE)
        except OSError as error:
            raise ProxyError(503, f"no process could be started: {error}", code="not_started") from error

    async def _watched(self, process: Process, wish: Wish) -> str:
        """Wait for the end of a process and return its last words."""
        assert process.stderr is not None
        said = _words(await tail(process.stderr), wish)
        code = await process.wait()
        level = logging.INFO if code == 0 else logging.WARNING
        _log.log(level, "training of %s ended with exit status %d: %s", wish.set, code, said)
        return said


def _words(said: bytes, wish: Wish) -> str:
    """Return the line in which our programs say what went wrong, without where a data set lies on this machine."""
    lines = said.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
    line = lines[-1].removeprefix(_SAID)
    return line if wish.data is None else line.replace(str(wish.data), "the data set")
