"""The inner side of a process of its own: it reads questions from standard input and writes answers to standard output.

The first line holds its arguments and is answered when they can be used. `processes` is the other side.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from typing import Any, BinaryIO, Final, TypeAlias

JSON: TypeAlias = Mapping[str, Any]
Work: TypeAlias = Callable[..., Any]
"""From the parts of a question to what answers it."""
Judgement: TypeAlias = Callable[[str, str | None, JSON], Any]
"""A grader's work: from an answer, its reference and the task's metadata to what `graders.verdict.checked` takes."""

MEMORY: Final = 4 << 30
"""Bytes of address space. A tower of powers that would fill the machine is written in ten characters."""
CPU: Final = 1e9
"""Seconds, 30 years: the kernel's timer takes no number of them."""


def serve(prepare: Callable[[JSON], Work], *, bounded: bool = True) -> None:
    """Answer by what `prepare` makes of the arguments, until standard input ends; then the process ends at once.

    Whatever fails is answered with its error. What is printed goes to standard error. `bounded`: in limited memory and
    by one thread, as our own work is; not what a user wrote.
    """
    questions, answers = _sealed()
    if bounded:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    processors = 1 if bounded else os.cpu_count() or 1
    lines = _arriving(questions)
    arguments = json.loads(next(lines))
    ready, work = _attempt(prepare, arguments)
    _write(answers, ready)
    for line in lines:
        question = json.loads(line)
        # The kernel ends work that holds the interpreter, for who would kill this process may be gone.
        signal.setitimer(signal.ITIMER_VIRTUAL, min((arguments["seconds"] + 1) * processors, CPU))
        said, result = _attempt(work, *question)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        _write(answers, {**said, "result": result})


def _sealed() -> tuple[BinaryIO, BinaryIO]:
    """Return standard input for questions only and standard output for answers only; nothing else finds them."""
    questions = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    return questions, answers


def _arriving(questions: BinaryIO) -> Iterator[bytes]:
    """Hand on lines as they come. When there are no more, nobody waits: the process ends, whatever it is doing."""
    lines: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in questions:
            lines.put(line)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # this process, and what it has started
        os._exit(0)

    threading.Thread(target=read, name="questions", daemon=True).start()
    return iter(lines.get, b"")


def _attempt(work: Work, *given: Any) -> tuple[dict[str, str], Any]:
    """Return what went wrong, as a member `error`, and what came of `work`."""
    try:
        return {}, work(*given)
    except Exception as error:  # noqa: BLE001 - what the work raises cannot be known
        said = " ".join(str(error).split())
        return {"error": said if isinstance(error, ValueError) else f"{type(error).__name__}: {said}"}, None


def _write(answers: BinaryIO, message: JSON) -> None:
    answers.write(json.dumps(message).encode() + b"\n")
