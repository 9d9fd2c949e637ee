"""Sums by the hour as a page shows them: spans of time cut into steps, shares, quantiles, intervals. Pure.

Times are hours since the epoch, as in `tfgrpo.store.hours`; latencies are seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tfgrpo.significance import share_interval
from tfgrpo.store import Fact, Rewarded
from tfgrpo.store import hours as facts
from tfgrpo.store.hours import HOUR

ARMS: Final = ("live", "candidate", "control", "none", "pinned")
"""Those whose rewards are shown. What is `unknown` counts in nothing."""

MEDIAN: Final = 0.5
MOST: Final = 0.95


@dataclass(frozen=True, slots=True)
class Span:
    """`steps` steps of `width` hours that end with the one that runs."""

    name: str
    said: str
    step: str
    width: int
    steps: int

    def since(self, now: float) -> int:
        """Return the hour in which the span begins; steps of a day begin at midnight (UTC)."""
        return (int(now // HOUR) // self.width + 1 - self.steps) * self.width

    def begins(self, now: float) -> list[int]:
        """Return when each step begins, in seconds since the epoch."""
        return [(self.since(now) + step * self.width) * HOUR for step in range(self.steps)]


SPANS: Final = {
    one.name: one
    for one in (
        Span("day", "24 hours", "an hour", 1, 24),
        Span("week", "7 days", "six hours", 6, 28),
        Span("month", "30 days", "a day", 24, 30),
        Span("quarter", "90 days", "three days", 72, 30),
    )
}


@dataclass(slots=True)
class Step:
    """What happened in one step, or in a whole span. `added` counts exchanges by the latency the proxy added."""

    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    added: defaultdict[float, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def requests(self) -> int:
        """How many requests there were."""
        return sum(self.counts[outcome] for outcome in ("complete", "failed", "broken", "aborted"))

    @property
    def errors(self) -> int:
        """How many were answered 400 and above or not at all, or were cut by the upstream."""
        return self.counts["failed"] + self.counts["broken"]

    @property
    def left(self) -> int:
        """How many were left by their clients."""
        return self.counts["aborted"]

    @property
    def begun(self) -> int:
        """How many trajectories began."""
        return self.counts[facts.BEGUN]

    @property
    def labelled(self) -> int:
        """How many of them have a reward."""
        return self.counts[facts.LABELLED]

    @property
    def tokens(self) -> int:
        """How many tokens were read and written, as far as upstreams said."""
        return self.counts[facts.PROMPT_TOKENS] + self.counts[facts.COMPLETION_TOKENS]

    @property
    def failing(self) -> float | None:
        """The share of errors; None without requests."""
        return self.errors / self.requests if self.requests else None

    @property
    def coverage(self) -> float | None:
        """The share of the trajectories that have a reward; None where none began."""
        return min(1.0, self.labelled / self.begun) if self.begun else None

    def latency(self, share: float) -> float | None:
        """Return what that share of the requests was delayed by at most, in seconds within a tenth; None: unknown."""
        left = share * sum(self.added.values())
        for seconds, count in sorted(self.added.items()):
            left -= count
            if left <= 0:
                return seconds
        return None

    @property
    def median(self) -> float | None:
        """The latency that half of the requests stay below."""
        return self.latency(MEDIAN)

    @property
    def most(self) -> float | None:
        """The latency that 95 of 100 requests stay below."""
        return self.latency(MOST)

    def take(self, fact: Fact) -> None:
        """Add one fact."""
        if fact.name.startswith(facts.ADDED):
            self.added[facts.latency(fact.name)] += fact.count
        else:
            self.counts[fact.name] += fact.count


@dataclass(frozen=True, slots=True)
class Reward:
    """The mean reward of `labelled` trajectories, with its interval at the level of 95 percent."""

    labelled: int
    mean: float
    low: float
    high: float


def steps(found: Iterable[Fact], count: int) -> tuple[list[Step], Step]:
    """Return what happened in each of `count` steps, and in all together."""
    each, whole = [Step() for _ in range(count)], Step()
    for fact in found:
        # What began on a machine whose clock is ahead belongs to the step that runs.
        each[min(fact.step, count - 1)].take(fact)
        whole.take(fact)
    return each, whole


def rewards(found: Iterable[Rewarded], count: int) -> tuple[Sequence[str], list[Mapping[str, Reward]]]:
    """Return the arms that have rewards, in their order, and for each of `count` steps what each of them came to."""
    each: list[dict[str, Reward]] = [{} for _ in range(count)]
    for one in found:
        if one.labelled > 0 and one.arm in ARMS:
            mean = min(1.0, max(0.0, one.rewards / one.labelled))
            each[min(one.step, count - 1)][one.arm] = Reward(one.labelled, mean, *share_interval(mean, one.labelled))
    return [arm for arm in ARMS if any(arm in step for step in each)], list(each)
