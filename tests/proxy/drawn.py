"""A live experiment's traffic as a proxy records it, at times of a test's own."""

from __future__ import annotations

import random
from typing import Any

from msgspec import structs

from tests.proxy import examples
from tfgrpo.store import Batch, Store
from tfgrpo.types import Arm, Assignment, Bodies, Exchange, Experience, Label, Library

HOUR = 3600.0
DAY = 24 * HOUR
SHARES = {"candidate": 0.2, "control": 0.1}
ALL: dict[Arm, float] = {"live": 0.7, "candidate": 0.2, "control": 0.1}


def deploy(store: Store) -> None:
    """Make two versions of the set `math` and deploy them, as live and as candidate."""
    for text in ("Show each step.", "Check the units."):
        lesson = Experience("e1", text, sources=("g-seen",))
        store.sets.add_version("math", Library((lesson,), 2), status="by hand")
    store.sets.deploy("math", live=1, candidate=2, shares=SHARES, reason="try", actor="me")


class Traffic:
    """Rows as a proxy records them, at times of the test's own. `now` is the time that experiments see."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = 0.0
        self._rng = random.Random(2)  # noqa: S311 - a simulation
        self._count = 0

    def clock(self) -> float:
        return self.now

    def begin(self, arm: Arm, reward: float | None, *, after: float = 60.0, **changes: Any) -> Assignment:
        """Record one trajectory that begins now, is answered within two seconds and labelled `after` seconds."""
        self._count += 1
        name = f"t-{self._count:06}"
        versions = {"live": 1, "candidate": 2}
        row = structs.replace(
            examples.assignment(name),
            arm=arm,
            version=versions.get(arm, 0),
            probability=ALL[arm],
            revision=1,
            started_at=self.now,
        )
        row = structs.replace(row, **{key: value for key, value in changes.items() if key != "outcome"})
        exchange = structs.replace(
            examples.exchange(f"ex-{name}", trajectory=name, outcome=changes.get("outcome", "complete")),
            arm=arm,
            started_at=self.now,
            ended_at=self.now + 2,
            completion_tokens=30,
        )
        self.add([row], [exchange])
        if reward is not None:
            made = structs.replace(
                examples.label(f"f-{name}", reward), exchange=exchange.id, created_at=self.now + after
            )
            self.store.labels.add([made])
        return row

    def add(self, rows: list[Assignment], exchanges: list[Exchange], labels: list[Label] | None = None) -> None:
        self.store.traffic.add(Batch(tuple((one, Bodies()) for one in exchanges), tuple(rows)))
        if labels:
            self.store.labels.add(labels)

    def many(self, count: int, good: dict[Arm, float], *, seconds: float = 60.0, revision: int = 1) -> None:
        """Record `count` trajectories, one every `seconds`, in a few transactions."""
        rows, exchanges, labels = [], [], []
        for _ in range(count):
            self._count += 1
            self.now += seconds
            name = f"t-{self._count:06}"
            arm = self._rng.choices(list(ALL), list(ALL.values()))[0]
            rows.append(
                structs.replace(
                    examples.assignment(name), arm=arm, probability=ALL[arm], revision=revision, started_at=self.now
                )
            )
            exchanges.append(
                structs.replace(
                    examples.exchange(f"ex-{name}", trajectory=name),
                    started_at=self.now,
                    ended_at=self.now + 2,
                    completion_tokens=30,
                )
            )
            if self._rng.random() < 0.7:
                value = float(self._rng.random() < good[arm])
                labels.append(
                    structs.replace(examples.label(f"f-{name}", value), exchange=f"ex-{name}", created_at=self.now + 60)
                )
        self.add(rows, exchanges, labels)
