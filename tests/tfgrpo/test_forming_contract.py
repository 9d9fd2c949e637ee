"""Forming groups looks at few labels; what it finds is what a look at all of them comes to, on either store."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.postgresql import Server
from tests.tfgrpo.store.examples import exchange, label
from tfgrpo.forming import form, labels_of
from tfgrpo.store import Batch, Store
from tfgrpo.teaching import Teaching
from tfgrpo.types import Bodies, Exchange, Label
from tfgrpo.weighing import REWARD_ONLY, Metric, Metrics, alike, weighed

Groups: TypeAlias = Mapping[str, tuple[list[tuple[str, int]], dict[tuple[str, int], float]]]
"""By the key of a group its rollouts, and what the judged ones earned."""

METRICS: Mapping[str, Metrics] = {
    "reward": REWARD_ONLY,
    "weighted": {"tone": Metric(0.3, worst=0.9, best=0.1)},
    "three": {"reward": Metric(), "tone": Metric(0.3, worst=0.9, best=0.1), "speed": Metric(2.2)},
}

ROUNDS = 40
"""How many apps with traffic of their own are compared."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    if request.param == "sqlite":
        opened = Store.open(_filled(f"sqlite:///{tmp_path_factory.mktemp('forming') / Path('t.db')}"))
        yield opened
        opened.close()
        return
    started: Server = request.getfixturevalue("postgresql")
    with started.database() as url:
        opened = Store.open(_filled(url))
        yield opened
        opened.close()


@pytest.mark.parametrize("share", [1.0, 0.5, 0.3])
@pytest.mark.parametrize("own_labels", [True, False], ids=["own labels count", "own labels do not"])
@pytest.mark.parametrize("metrics", METRICS.values(), ids=METRICS)
def test_groups_and_rewards_are_those_of_a_look_at_all_labels(
    store: Store, metrics: Metrics, own_labels: bool, share: float
) -> None:
    judged = 0
    for app in range(ROUNDS):
        teaching = Teaching(frozenset({f"app-{app}"}), own_labels=own_labels, max_share=share)
        found = {
            group.key: (group.rollouts, group.rewards())
            for versions in form(store, metrics=metrics, teaching=teaching)
            for group in versions
        }
        assert found == _looked_at(store, f"app-{app}", metrics, teaching)
        judged += sum(len(rewards) for _, rewards in found.values())
    assert judged > ROUNDS


@pytest.mark.parametrize("own_labels", [True, False])
def test_the_values_of_a_group_are_those_of_its_rollouts(store: Store, own_labels: bool) -> None:
    teaching = Teaching(own_labels=own_labels, max_share=0.5)
    for versions in form(store, metrics=METRICS["three"], teaching=teaching):
        for group in versions:
            assert sorted(group.values) == sorted(group.rewards().values())


def _filled(url: str) -> str:
    """Make a store of many small apps, from one in which labels are rare to one in which they compete everywhere."""
    opened = Store.open(url, migrate=True)
    numbers = count()
    for app in range(ROUNDS):
        luck = random.Random(app)  # noqa: S311 - no secret
        exchanges = [_exchange(luck, f"app-{app}", next(numbers)) for _ in range(40)]
        opened.traffic.add(Batch(exchanges=tuple((one, Bodies()) for one in exchanges)))
        some = 5 + 3 * app
        opened.labels.add([_label(luck, f"app-{app}", next(numbers), exchanges) for _ in range(some)])
    opened.close()
    return url


def _exchange(luck: random.Random, app: str, number: int) -> Exchange:
    trajectory = luck.randrange(25)
    return exchange(
        number, app=app, trajectory=f"{app}-t{trajectory}", group=f"{app}-g{trajectory % 6}",
        version=luck.choice([1, 1, 1, 1, 2]), choices=luck.choice([1, 1, 1, 3]), credential=f"k{luck.randrange(3)}",
        outcome=luck.choice(["complete"] * 5 + ["aborted"]), dialect=luck.choice(["chat"] * 9 + [None]),
        truncated=luck.random() < 0.05, started_at=float(luck.randrange(9)),
    )  # fmt: skip


def _label(luck: random.Random, app: str, number: int, exchanges: list[Exchange]) -> Label:
    named = luck.choice(exchanges)
    of_trajectory = luck.random() < 0.3
    return label(
        number, app=app if luck.random() < 0.95 else "app-0",
        exchange=None if of_trajectory else luck.choice([named.id] * 19 + ["not there"]),
        trajectory=named.trajectory if of_trajectory or luck.random() < 0.2 else None,
        choice=luck.choice([0] * 12 + [1]), metric=luck.choice(["reward", "tone", "speed", "speed", "other"]),
        value=luck.choice([0.0, 1.0, 0.5, luck.random(), 2.5]), source=luck.choice(["user", "user", "judge"]),
        credential=luck.choice([named.credential, "k0", "k1", "k2", "judge"]), created_at=float(luck.randrange(9)),
    )  # fmt: skip


def _looked_at(store: Store, app: str, metrics: Metrics, teaching: Teaching) -> Groups:
    """Form the groups of an app by a look at all labels of each task."""
    tasks: dict[str, dict[str, list[Exchange]]] = defaultdict(dict)
    named = sorted({row[2] for row in store.learnable.outlines(apps={app})})
    for trajectory, exchanges in store.traffic.of_trajectories(app, named).items():
        read = [one for one in exchanges if one.outcome == "complete" and one.dialect is not None]
        if read and not any(one.truncated for one in read):
            tasks[read[0].group][trajectory] = read
    found: dict[str, tuple[list[tuple[str, int]], dict[tuple[str, int], float]]] = {}
    for task, attempts in tasks.items():
        choices = {name: max(one.choices for one in read) for name, read in attempts.items()}
        rewards = labels_of(store, app, sorted(attempts), metrics, teaching)
        shares = {one: reward.shares for one, reward in rewards.items() if one[1] < choices[one[0]]}
        names = alike(shares, metrics) if shares else {}
        for name, read in sorted(attempts.items()):
            versions = {one.version for one in read}
            key = f"{task}@{versions.pop() if len(versions) == 1 else 'mixed'}"
            rollouts, earned = found.setdefault(key, ([], {}))
            mine = [(name, choice) for choice in range(choices[name])]
            rollouts += mine
            earned |= {
                one: weighed({metric: shares[one][metric] for metric in names[one]}, metrics)
                for one in mine
                if one in names
            }
    return found
