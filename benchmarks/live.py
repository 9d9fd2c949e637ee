"""Simulated live traffic against the product's own draw, books and decision: how often it decides, and how soon.

20,000 trajectories a day, begun at random times; a base reward of 0.7 that swings by 0.1 to both sides within a day;
labels after 0 to 4 hours, 30 percent never; a look after every label. A trajectory is drawn, awaits its label, is
labelled and settles as in a proxy with `promotion: auto` and its default settings; only the store is left out.

    python -m benchmarks.live [--seeds 200] [--only nothing harm ...]
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Final

from tfgrpo import experiment
from tfgrpo.experiment import Account, Levels, Seen
from tfgrpo.types import Arm

DAY: Final = 86400.0
HOUR: Final = 3600.0
A_DAY: Final = 20_000
SHARE: Final = 0.1
OUTSTANDING: Final = 50
PATIENCE: Final = 1 * HOUR
WINDOW: Final = 24 * HOUR
SLOWEST: Final = 4 * HOUR


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of candidate. `labels`: how often its trajectories of reward 0 and of reward 1 are labelled."""

    name: str
    effect: float = 0.0
    labels: tuple[float, float] = (0.7, 0.7)
    days: float = 2.0


CASES: Final = (
    Case("nothing"),
    Case("harm", -0.2, days=1.0),
    Case("help", 0.1),
    Case("unhappy users silent", 0.0, (0.4, 0.7)),
    Case("happy users label more", 0.0, (0.7, 1.0)),
    Case("fewer label", 0.0, (0.5, 0.5)),
)


@dataclass(frozen=True, slots=True)
class End:
    """How one run ended: what was done, when (days), and the candidate's answers until then."""

    action: str
    day: float
    answered: int
    why: str


def run(case: Case, seed: int) -> End:
    """Simulate one candidate until something is done with it or the days are over."""
    rng = random.Random(f"{case.name} {seed}")
    secret = rng.randbytes(32)
    shares: dict[Arm, float] = {"candidate": SHARE, "live": 1 - SHARE}
    account, levels = Account(shares), Levels()
    coming: list[tuple[float, int, Arm, float, float]] = []
    unsettled: deque[tuple[float, Arm, float, float | None]] = deque()
    waiting: dict[int, float] = {}
    phase = rng.random()
    answered = number = 0
    now, end = 0.0, case.days * DAY
    while True:
        now += rng.expovariate(A_DAY / DAY)
        until = min(now, end)
        while True:
            label_at = coming[0][0] if coming else math.inf
            settle_at = unsettled[0][0] if unsettled else math.inf
            at = min(label_at, settle_at)
            if at > until:
                break
            if label_at <= settle_at:
                _, key, arm, probability, reward = heapq.heappop(coming)
                waiting.pop(key, None)
                account.label(arm, reward)
            else:
                _, arm, probability, known = unsettled.popleft()
                account.settle(Seen(arm, known))
            decision = experiment.decide(account, levels)
            if decision.action != "none":
                return End(decision.action, at / DAY, answered, decision.reason)
        if now > end:
            return End("none", case.days, answered, "")
        number += 1
        while waiting and (oldest := next(iter(waiting))) is not None and waiting[oldest] < now - PATIENCE:
            del waiting[oldest]
        if len(waiting) >= OUTSTANDING:
            continue
        arm, probability = experiment.draw(secret, "set:1", f"t-{number}", shares)
        base = 0.7 + 0.1 * math.sin(2 * math.pi * (now / DAY + phase))
        is_candidate = arm == "candidate"
        good = rng.random() < base + (case.effect if is_candidate else 0.0)
        labelled = rng.random() < (case.labels[good] if is_candidate else 0.7)
        reward = float(good)
        if is_candidate:
            answered += 1
            waiting[number] = now
        if labelled:
            heapq.heappush(coming, (now + rng.random() * SLOWEST, number, arm, probability, reward))
        unsettled.append((now + WINDOW, arm, probability, reward if labelled else None))
