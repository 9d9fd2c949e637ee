"""Graders as a user would write them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable

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
