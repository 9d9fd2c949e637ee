"""Which split a task belongs to, by a hash of what it asks: the same text is in the same split, in every run.

Neither seed nor order nor the other tasks of a file move a task, so that what was held out once stays held out, also
when a file grows. Knows no file and no grader.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tfgrpo.types import Task

THREE_FROM: Final = 100
"""Tasks from which a validation split is worth having: below, it would be too small to choose by."""


@dataclass(frozen=True, slots=True)
class Splits:
    """Tasks to learn from, to choose the best library by, and to prove it on. Each keeps the order given."""

    train: tuple[Task, ...]
    validation: tuple[Task, ...]
    held_out: tuple[Task, ...]


def split(tasks: Sequence[Task], *, held_out: float, validation: float) -> Splits:
    """Return the splits of `tasks`; the shares are of all tasks, and below `THREE_FROM` there is no validation.

    What is held out is the same with and without validation. A split of few tasks may be empty.
    """
    border = held_out + (validation if len(tasks) >= THREE_FROM else 0.0)
    places = [(task, place(task)) for task in tasks]
    return Splits(
        tuple(task for task, at in places if at >= border),
        tuple(task for task, at in places if held_out <= at < border),
        tuple(task for task, at in places if at < held_out),
    )


def place(task: Task) -> float:
    """Return where a task's text falls in [0, 1): case and white space do not count, the right answer neither."""
    said = [[message.role, " ".join(message.text.casefold().split())] for message in task.messages]
    digest = hashlib.sha256(json.dumps(said).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64
