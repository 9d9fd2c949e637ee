"""Graders as a user would write them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Awaitable
from fractions import Fraction
from pathlib import Path

from tfgrpo.types import Rollout, Task


def half(answer: str) -> float:
    return 0.5 if answer else 0.0


def strict(answer: str, reference: str) -> bool:
    return answer == reference


def told(answer: str, reference: str | None, *, task: Task, trajectory: Rollout) -> tuple[float, str]:
    return 1.0, f"{answer} {reference} {task.key} {trajectory.trajectory}"


def strange(answer: str, weather: str) -> float:
    return float(len(answer) > len(weather))


def too_much(answer: str) -> float:
    return 7.0 + len(answer)


def failing(answer: str) -> float:
    return 1.0 / (len(answer) * 0)


async def later(answer: str) -> float:
    return 0.25 * len(answer)


def handing_on(answer: str) -> Awaitable[float]:
    return later(answer)


def nothing(answer: str) -> None:
    assert answer


def not_a_number(answer: str) -> float:
    return float("nan") * len(answer)


def leaving(answer: str) -> float:
    sys.exit(len(answer))


def waiting(answer: str) -> float:
    """Waits for what never comes."""
    threading.Event().wait()
    return float(len(answer))


FIVE = 5


def exiting(answer: str) -> float:
    os._exit(len(answer))


def crashing(answer: str) -> float:
    os.kill(os.getpid(), signal.SIGSEGV)
    return float(len(answer))


def exiting_at(answer: str) -> float:
    return 1.0 if answer == "right" else exiting(answer)


def talking(answer: str) -> float:
    """Prints where answers go, and reads where questions come from."""
    print('{"result": 1.0}')  # noqa: T201 - what is tested
    os.write(1, b'{"result": 1.0}\n')
    return 0.5 if sys.stdin.read() == "" and answer else 0.0


def own_process(answer: str) -> tuple[float, str]:
    return 1.0, f"{answer} {os.getpid()}"


def wordy(answer: str) -> tuple[float, str]:
    return 1.0, "\u20ac" * 2_000_000 * len(answer)


def third(answer: str) -> Fraction:
    return Fraction(len(answer), 3)


def sleeping(answer: str) -> float:
    Path(answer).write_text(str(os.getpid()))
    return waiting(answer)
