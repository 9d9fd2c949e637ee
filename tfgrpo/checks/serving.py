"""The side of a grading process: it reads questions from standard input and writes judgements to standard output.

The first line holds the grader's arguments and is answered when they can be used. `graders.apart` is the other side.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final, TypeAlias

JSON: TypeAlias = Mapping[str, Any]
Judgement: TypeAlias = Callable[[str, str | None, JSON], Any]
"""From an answer, its reference and the task's metadata to what `graders.verdict.checked` takes."""

MEMORY: Final = 4 << 30
"""Bytes of address space. A tower of powers that would fill the machine is written in ten characters."""


def serve(prepare: Callable[[JSON], Judgement]) -> None:
    """Judge until standard input ends, by what `prepare` makes of the arguments.

    Whatever fails is answered with its error. What a library prints goes nowhere.
    """
    answers = _sealed()
    arguments = json.loads(sys.stdin.buffer.readline())
    ready, judgement = _attempt(prepare, arguments)
    _write(answers, ready)
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        # The kernel ends a judgement that nobody waits for any more, for who started it may be gone.
        signal.setitimer(signal.ITIMER_VIRTUAL, arguments["seconds"] + 1)
        said, result = _attempt(judgement, asked["answer"], asked["reference"], asked["metadata"])
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        _write(answers, {**said, "result": result})


def _sealed() -> BinaryIO:
    """Return standard output for answers only, and put limits on this process."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that started this one
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return answers


def _attempt(work: Callable[..., Any], *given: Any) -> tuple[dict[str, str], Any]:
    """Return what went wrong, as a member `error`, and what came of `work`."""
    try:
        return {}, work(*given)
    except Exception as error:  # noqa: BLE001 - what a judgement's library raises cannot be known
        said = " ".join(str(error).split())
        return {"error": said if isinstance(error, ValueError) else f"{type(error).__name__}: {said}"}, None


def _write(answers: BinaryIO, message: JSON) -> None:
    answers.write(json.dumps(message).encode() + b"\n")
