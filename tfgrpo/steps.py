"""What training came to: step by step, epoch by epoch, and in the end. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tfgrpo.trial import Finding
from tfgrpo.types import Group, Library, Operation, Refusal
from tfgrpo.votes import Votes


class Listener(Protocol):
    """Is told how far training is."""

    def begin(self, stage: str, total: int) -> None:
        """A stage with so many calls begins."""

    def advance(self, stage: str) -> None:
        """One call of the stage ended."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch came to. `lessons` counts them, `faults` say what could not be used and why.

    `reward` is the mean of the judged rollouts, `tokens` what the rollouts took. `findings` are those of the changes
    on trial when the batch was rolled out, `taken_back` are those undone, with the numbers; both come before the step's
    own edit. `votes` are what its lessons say of the entries after it. The closing step, of stage `check`, teaches
    nothing: it ends the trials.
    """

    groups: int
    telling: tuple[Group, ...]
    lessons: int = 0
    proposals: int = 0
    applied: tuple[Operation, ...] = ()
    refused: tuple[Refusal, ...] = ()
    faults: tuple[str, ...] = ()
    stage: Literal["learn", "check"] = "learn"
    epoch: int = 0
    reward: float | None = None
    tokens: int = 0
    findings: tuple[Finding, ...] = ()
    taken_back: tuple[Refusal, ...] = ()
    votes: Mapping[str, Votes] = field(default_factory=dict)
    backing: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The groups that back each entry after it, by text, and those that want an entry away, by id; both where a quorum
    is asked for."""
    opposition: Mapping[str, frozenset[str]] = field(default_factory=dict)
    before: Library = field(default_factory=Library)
    after: Library = field(default_factory=Library)

    @property
    def harmful(self) -> tuple[Refusal, ...]:
        """Those of the changes taken back that were shown to do harm, with the numbers."""
        return tuple(Refusal(one.change.operation, str(one)) for one in self.findings if one.harms)


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The library at the end of an epoch, and its mean reward on validation tasks where there are any."""

    library: Library
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """The library that came of it, and how: steps in order, and what the result was chosen from.

    A score is what `library` was chosen by, so it is too good to be reported as what the library is worth.
    """

    library: Library
    steps: tuple[Step, ...]
    epochs: tuple[EpochEnd, ...] = ()

    @property
    def applied(self) -> int:
        """How many operations were applied."""
        return sum(len(step.applied) for step in self.steps)
