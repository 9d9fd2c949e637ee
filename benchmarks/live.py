"""Simulated live traffic on the product's own draw, books and decision: how often it decides, and how soon.

20,000 trajectories a day, begun at random times; a base reward of 0.7 that swings by 0.1 to both sides within a day;
labels after 0 to 4 hours, 30 percent never; a look after every label. A trajectory is drawn, awaits its label, is
labelled and settles as in a proxy with `promotion: auto` and its default settings; HTTP and the store are left out.

    python -m benchmarks.live [--seeds 200] [--only CASE ...]
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import random
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final, Literal

from proxy.experiment_settings import ExperimentSettings, PromotionSettings
from tfgrpo import experiment
from tfgrpo.experiment import Account, Decision, Levels, Seen
from tfgrpo.types import Arm

DAY: Final = 86400.0
A_DAY: Final = 20_000
BASE: Final = 0.7
SWING: Final = 0.1
LABELLED: Final = 0.7
SLOWEST: Final = 4 * 3600.0

_EXPERIMENT: Final = ExperimentSettings()
_PROMOTION: Final = PromotionSettings()


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of candidate, and what is asked of the decision.

    `labels`: how often its trajectories of reward 0, and of reward 1, are labelled. `bad` runs may be `most` percent.
    """

    name: str
    asked: str
    bad: Callable[[End], bool]
    most: float
    effect: float = 0.0
    labels: tuple[float, float] = (LABELLED, LABELLED)
    days: float = 2.0


@dataclass(frozen=True, slots=True)
class End:
    """How one run ended: what was done, on which day, and how many trajectories the candidate had begun by then."""

    action: Literal["promote", "roll back", "none"]
    day: float
    answered: int


def _late(end: End) -> bool:
    return end.action != "roll back" or end.answered >= 0.03 * A_DAY


def _promoted(end: End) -> bool:
    return end.action == "promote"


CASES: Final = (
    Case("nothing", "promoted or rolled back: at most 5 %", lambda end: end.action != "none", 5),
    Case("harm", "-0.2, not rolled back before 3 % of a day: at most 5 %", _late, 5, -0.2, days=1.0),
    Case("help", "+0.1, not promoted within two days: at most 20 %", lambda end: not _promoted(end), 20, 0.1),
    Case("silent", "unhappy users label less, promoted: none", _promoted, 2.5, labels=(0.4, LABELLED)),
    Case("loud", "happy users label more, promoted: none", _promoted, 2.5, labels=(LABELLED, 1.0)),
    Case("fewer", "all label less, promoted: none", _promoted, 2.5, labels=(0.5, 0.5)),
)


class Simulation:
    """One candidate on live traffic."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case = case
        self._rng = random.Random(f"{case.name} {seed}")  # noqa: S311 - a simulation
        self._secret = self._rng.randbytes(32)
        self._phase = self._rng.random()
        self._shares = {"candidate": _PROMOTION.share}
        arms: dict[Arm, float] = {"candidate": _PROMOTION.share, "live": 1 - _PROMOTION.share}
        self._account = Account(arms)
        self._levels = Levels(better=_PROMOTION.better, worse=_PROMOTION.worse, errors=_PROMOTION.errors)
        self._coming: list[tuple[float, int, Arm, float]] = []
        self._unsettled: deque[tuple[float, Arm, float | None]] = deque()
        self._waiting: OrderedDict[int, float] = OrderedDict()
        self._begun = self._answered = 0

    def run(self) -> End:
        """Return what becomes of it within the days of its case."""
        now, end = 0.0, self._case.days * DAY
        while now < end:
            now += self._rng.expovariate(A_DAY / DAY)
            while (at := self._next()) <= min(now, end):
                decision = self._take()
                if decision.action != "none":
                    return End(decision.action, at / DAY, self._answered)
            self._begin(now)
        return End("none", self._case.days, self._answered)

    def _next(self) -> float:
        """The time of the next label or settling."""
        label = self._coming[0][0] if self._coming else math.inf
        return min(label, self._unsettled[0][0] if self._unsettled else math.inf)

    def _take(self) -> Decision:
        """Count it, and look."""
        if self._coming and self._coming[0][0] == self._next():
            _, number, arm, reward = heapq.heappop(self._coming)
            self._waiting.pop(number, None)
            self._account.label(arm, reward)
        else:
            _, arm, label = self._unsettled.popleft()
            self._account.settle(Seen(arm, label))
        return experiment.decide(self._account, self._levels)

    def _begin(self, now: float) -> None:
        """Begin a trajectory: it is drawn, unless as many await their label as may."""
        self._begun += 1
        while self._waiting and next(iter(self._waiting.values())) < now - _EXPERIMENT.early_window:
            self._waiting.popitem(last=False)
        if len(self._waiting) >= _PROMOTION.outstanding:
            return
        arm, _ = experiment.draw(self._secret, "set:1", f"t-{self._begun}", self._shares)
        chance, labels = BASE + SWING * math.sin(2 * math.pi * (now / DAY + self._phase)), (LABELLED, LABELLED)
        if arm == "candidate":
            chance, labels = chance + self._case.effect, self._case.labels
            self._answered += 1
            self._waiting[self._begun] = now
        good = self._rng.random() < chance
        label = float(good) if self._rng.random() < labels[good] else None
        if label is not None:
            heapq.heappush(self._coming, (now + self._rng.random() * SLOWEST, self._begun, arm, label))
        self._unsettled.append((now + _EXPERIMENT.label_window, arm, label))


def run(name: str, seed: int) -> End:
    """Run one seed of a case."""
    return Simulation(next(case for case in CASES if case.name == name), seed).run()


def interval(bad: int, runs: int) -> tuple[float, float]:
    """Return the exact 95 percent interval of a rate (Clopper and Pearson 1934)."""

    def at_most(count: int, rate: float) -> float:
        return sum(math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(count + 1))

    def where(falls: Callable[[float], bool]) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if falls(middle) else (low, middle)
        return low

    lowest = where(lambda rate: 1 - at_most(bad - 1, rate) < 0.025) if bad else 0.0  # noqa: PLR2004 - two-sided 5 percent
    return lowest, where(lambda rate: at_most(bad, rate) > 0.025) if bad < runs else 1.0  # noqa: PLR2004 - as above


def report(case: Case, ends: Sequence[End], seconds: float) -> bool:
    """Print what the runs of a case came to; say whether it is what is asked."""
    bad = sum(case.bad(end) for end in ends)
    low, high = interval(bad, len(ends))
    good = 100 * bad <= case.most * len(ends)
    counts = {action: sum(end.action == action for end in ends) for action in ("promote", "roll back", "none")}
    answered = sorted(end.answered for end in ends)
    late = answered[-1 - len(answered) // 20]
    said = (
        f"{case.name}: {case.asked}",
        f"    {'met' if good else 'MISSED'}: {bad} of {len(ends)} runs, 95 % interval {low:.1%} to {high:.1%}",
        f"    promoted {counts['promote']}, rolled back {counts['roll back']}, undecided {counts['none']}",
        f"    the candidate answered {median(answered):.0f} (median), {late} (95 %), {answered[-1]} (most)",
        f"    day {median(end.day for end in ends):.2f} (median); took {seconds:.0f} s",
    )
    print(*said, sep="\n", flush=True)  # noqa: T201 - a program's result
    return good


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; 1 when one is missed."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="benchmarks.live")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    asked = parser.parse_args(arguments)
    missed = 0
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for case in CASES:
            if case.name in asked.only:
                started = time.monotonic()
                ends = list(pool.map(partial(run, case.name), range(asked.seeds), chunksize=2))
                missed += not report(case, ends, time.monotonic() - started)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
