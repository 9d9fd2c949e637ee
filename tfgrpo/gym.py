"""Tasks of reasoning-gym, which makes and checks them itself: `reasoning-gym:FAMILY?n=200&seed=1`.

A task carries in its metadata where it comes from; `own_checkers` has it judged by its family's own checker. Here is
what such a name means and how its tasks are had; the package itself is used in a process of its own (`checks.gym`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl

from tfgrpo import blocking, datasets
from tfgrpo.datasets import Dataset
from tfgrpo.errors import DatasetError, UsageError
from tfgrpo.graders import require
from tfgrpo.graders.apart import LIMIT
from tfgrpo.processes import NoAnswer, Process
from tfgrpo.types import Message, Task

PREFIX: Final = "reasoning-gym:"
ORIGIN: Final = "reasoning_gym"
"""The key of a task's metadata that says where it comes from: family, n, seed, index."""

SECONDS: Final = 60.0
"""What making one task may take."""

STRIDE: Final = 100_000
"""The most tasks of a seed, and how far seeds lie apart. The families make task `i` of their seed `s` from `s + i`:
with seeds as they are, those of 1 and 2 would be the same tasks but for one, and no held-out set for each other."""

FORM: Final = "Give your final answer, in the form the task asks for and with nothing else, as <answer>...</answer>."

_NAME: Final = re.compile(r"[a-z0-9_]+")
_NUMBERS: Final = {"n": (200, 1, STRIDE), "seed": (0, 0, 40_000)}
"""What may be said of a family: its value where it is left out, the least, the most. NumPy, which some families use,
takes seeds below 2 ** 32."""


@dataclass(frozen=True, slots=True)
class Family:
    """So many tasks of one family by one seed."""

    name: str
    n: int
    seed: int

    def process(self, *, judge: bool, seconds: float) -> Process:
        """Return the process that makes its tasks, or judges answers to them; UsageError without the package."""
        require("reasoning_gym", extra="reasoning-gym", what=f"{PREFIX}{self.name}")
        arguments = {"family": self.name, "n": self.n, "seed": self.seed * STRIDE, "judge": judge}
        limit = LIMIT if judge else "the most that making a task may take"
        return Process(f"{PREFIX}{self.name}", "tfgrpo.checks.gym", seconds, limit, arguments)


def named(text: str) -> Family | None:
    """Return the family that `text` names, None where it is the name of a file; UsageError where it is neither."""
    if not text.startswith(PREFIX):
        return None
    name, _, query = text.removeprefix(PREFIX).partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    if not _NAME.fullmatch(name) or set(given) - set(_NUMBERS):
        raise UsageError(f"{text}: it must read {PREFIX}FAMILY?n=200&seed=1", field="data")
    return Family(name, **{key: _number(text, key, given.get(key)) for key in _NUMBERS})


def origin(task: Task) -> tuple[Family, int] | None:
    """Return the family of a task and which of its tasks it is; None for a task of another source."""
    found = task.metadata.get(ORIGIN)
    if not isinstance(found, Mapping):
        return None
    return Family(found["name"], found["n"], found["seed"]), found["index"]


def made(family: Family, *, seconds: float = SECONDS) -> Dataset:
    """Return the family's tasks; those are left out whose own right answer its checker does not take for right.

    Raises:
        UsageError: there is no such family, or the package is missing.
        DatasetError: it cannot make its tasks, or its checker is of no use.
    """
    try:
        rows = blocking.run(lambda: _rows(family, seconds))
    except NoAnswer as error:
        raise DatasetError(f"{PREFIX}{family.name} cannot make its tasks: {error}", field="data") from error
    sound = [(index, row) for index, row in enumerate(rows) if row["right"] is not False]
    if not sound:
        raise DatasetError(
            f"{PREFIX}{family.name}: its checker takes none of its own right answers for right; name another family",
            field="data",
        )
    found = datasets.distinct((f"task {index}", _task(family, index, row)) for index, row in sound)
    return replace(found, remark=_remark(family, [row["right"] for row in rows]))


async def _rows(family: Family, seconds: float) -> list[dict[str, Any]]:
    process = family.process(judge=False, seconds=seconds)
    try:
        return [await process.ask(None, None, {"index": index}) for index in range(family.n)]
    finally:
        await process.close()


def _task(family: Family, index: int, row: Mapping[str, Any]) -> Task:
    messages = (Message("system", FORM), Message("user", row["question"]))
    metadata = {ORIGIN: {**asdict(family), "index": index}}
    return Task(datasets.key_of(messages, row["answer"]), messages, row["answer"], metadata)


def _remark(family: Family, right: Sequence[bool | None]) -> str | None:
    """Return what to tell of a checker that could not be tried on right answers, or failed on them."""
    if wrong := right.count(False):
        return f"{PREFIX}{family.name}: {wrong} tasks are left out, whose right answer its checker takes for wrong"
    if None in right:
        return f"{PREFIX}{family.name} names no right answers: its checker could not be tried on them before use"
    return None


def _number(text: str, key: str, given: str | None) -> int:
    default, least, most = _NUMBERS[key]
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and least <= int(given) <= most):
        raise UsageError(f"{text}: {key} must be a whole number from {least} to {most}, not {given!r}", field="data")
    return int(given)
