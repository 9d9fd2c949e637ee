"""A run's stored result as values. Runs of earlier releases lack keys: what is missing is empty, never an error."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tfgrpo import library
from tfgrpo.errors import UsageError
from tfgrpo.store import Run
from tfgrpo.types import Experience, Library

_ASKED: Final = ("from", "recipe", "seed")
"""What is shown of a run's arguments. The others are about the machine."""


class Edit(msgspec.Struct, frozen=True):
    """An operation, with the reason where it was refused or taken back."""

    operation: str = ""
    ids: tuple[str, ...] = ()
    text: str | None = None
    why: str = ""
    reason: str = ""
    sources: tuple[str, ...] = ()


class Contrast(msgspec.Struct, frozen=True):
    """A group that contrasted: its task, the rewards of its rollouts, and in the same order what fresh ones answered
    or which trajectories of the traffic they are.
    """

    task: str = ""
    rewards: tuple[float | None, ...] = ()
    key: str = ""
    version: int | None = None
    answers: tuple[str, ...] = ()
    trajectories: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """One batch."""

    step: int = 0
    epoch: int = 0
    stage: str = "learn"
    reward: float | None = None
    groups: int = 0
    contrasting: int = 0
    contrasts: tuple[Contrast, ...] = ()
    lessons: int = 0
    proposals: int = 0
    applied: tuple[Edit, ...] = ()
    refused: tuple[Edit, ...] = ()
    taken_back: tuple[Edit, ...] = ()
    faults: tuple[str, ...] = ()


class Epoch(msgspec.Struct, frozen=True):
    """The end of an epoch: how many lessons, and what validation tasks earned."""

    experiences: int = 0
    validation: float | None = None


class Guard(msgspec.Struct, frozen=True):
    """What came of tasks that the set was not made for and that must not get worse."""

    guard: str = ""
    verdict: str = ""
    difference: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)
    n: int = 0


class Gate(msgspec.Struct, frozen=True):
    """The held-out comparison with what was deployed."""

    verdict: str
    difference: float
    interval: tuple[float, float]
    smallest_detectable: float
    mean: float
    mean_against: float
    n: int
    k: int
    failed: int = 0
    level: float | None = None
    """One less the interval's confidence."""
    guards: tuple[Guard, ...] = ()


class Spent(msgspec.Struct, frozen=True):
    """What a stage used. `usd` None: nobody knows the price."""

    calls: int = 0
    replayed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = None


class _Result(msgspec.Struct, frozen=True):
    error: str | None = None
    version: int | None = None
    parent: int | None = None
    status: str | None = None
    deployed: bool = False
    policy_model: str | None = None
    splits: dict[str, int] | None = None
    groups: int = 0
    contrasting: int = 0
    lessons: int = 0
    proposals: int = 0
    applied: tuple[Edit, ...] = ()
    refused: tuple[Edit, ...] = ()
    taken_back: tuple[Edit, ...] = ()
    faults: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    library_before: tuple[Experience, ...] | None = None
    library_after: tuple[Experience, ...] | None = None
    experiences: tuple[Experience, ...] = ()
    gate: Gate | None = None
    usage: dict[str, Spent] = {}


class Record(msgspec.Struct, frozen=True):
    """A run as reports show it. `diff` is None where the library before is not known."""

    id: str
    set: str
    status: str
    started: str
    took: float | None
    asked: Mapping[str, Any]
    result: _Result
    before: tuple[Experience, ...] | None
    after: tuple[Experience, ...]
    diff: library.Diff | None

    @classmethod
    def of(cls, run: Run) -> Record:
        """Return the record of a run; UsageError when a value has another type than it ever had."""
        try:
            result = msgspec.convert(run.result, _Result)
        except msgspec.ValidationError as error:
            raise UsageError(f"the result of run {run.id} has another form: {error}; was the store edited?") from error
        before = result.library_before
        after = result.experiences if result.library_after is None else result.library_after
        return cls(
            id=run.id,
            set=run.set,
            status=run.status,
            started=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(run.started_at)),
            took=None if run.ended_at is None else run.ended_at - run.started_at,
            asked={name: run.arguments[name] for name in _ASKED if run.arguments.get(name) is not None},
            result=result,
            before=before,
            after=after,
            diff=None if before is None else library.diff(Library(before), Library(after)),
        )

    @property
    def kept(self) -> tuple[Experience, ...]:
        """The lessons that the run left as they were."""
        old = {entry.id: entry.text for entry in self.before or ()}
        return tuple(entry for entry in self.after if old.get(entry.id) == entry.text)
