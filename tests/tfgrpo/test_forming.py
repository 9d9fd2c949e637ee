"""How attempts and labels come to groups: rows in a real store, no bodies."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tfgrpo.store.examples import exchange, label
from tfgrpo.forming import Formed, form
from tfgrpo.rewards import Placed, rewards
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Exchange, Label
from tfgrpo.weighing import REWARD_ONLY, Metric, Metrics, alike, weighed


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/t.db", migrate=True)
    yield opened
    opened.close()


def record(store: Store, *exchanges: Exchange) -> None:
    store.traffic.add(Batch(exchanges=tuple((one, Bodies()) for one in exchanges)))


def formed(store: Store, metrics: Metrics = REWARD_ONLY) -> list[Formed]:
    return sorted((group for some in form(store, metrics=metrics) for group in some), key=lambda group: group.key)


def test_what_cannot_be_read_or_was_cut_is_no_attempt(store: Store) -> None:
    record(store, exchange(1), exchange(2, outcome="aborted"), exchange(3, truncated=True), exchange(4, dialect=None))
    (group,) = formed(store)
    assert group.rollouts == [("t-1", 0)]


def test_one_cut_exchange_spoils_its_trajectory(store: Store) -> None:
    record(store, exchange(1), exchange(2, trajectory="t-1", truncated=True))
    assert formed(store) == []


def test_a_trajectory_that_changed_its_version_is_in_a_group_of_its_own(store: Store) -> None:
    record(store, exchange(1, version=1), exchange(2, version=2, trajectory="t-1"), exchange(3, version=2))
    assert [(group.key, group.rollouts) for group in formed(store)] == [
        ("g@2", [("t-3", 0)]),
        ("g@mixed", [("t-1", 0)]),
    ]


def test_a_label_of_one_app_does_not_speak_of_another_apps_exchange(store: Store) -> None:
    record(store, exchange(1, app="other"))
    store.labels.add([label(1)])
    (group,) = formed(store)
    assert group.values == []


SEVERAL = {"reward": Metric(), "other": Metric(0.5, worst=1.0, best=0.2), "third": Metric(2.0)}


@pytest.mark.parametrize("metrics", [REWARD_ONLY, SEVERAL], ids=["reward only", "several metrics"])
@pytest.mark.parametrize("seed", [7, 8, 9])
def test_rewards_are_those_that_all_labels_together_come_to(store: Store, metrics: Metrics, seed: int) -> None:
    luck = random.Random(seed)  # noqa: S311 - no secret
    exchanges = [
        exchange(
            n, trajectory=f"t-{luck.randrange(40)}", choices=luck.choice([1, 1, 2]),
            outcome=luck.choice(["complete", "complete", "aborted"]), started_at=float(luck.randrange(50)),
        )
        for n in range(120)
    ]  # fmt: skip
    labels = [
        label(
            n, exchange=None if luck.random() < 0.2 else f"ex-{luck.randrange(120)}", choice=luck.choice([0, 0, 1]),
            trajectory=f"t-{luck.randrange(40)}", metric=luck.choice(["reward", "reward", "other", "third", "unknown"]),
            value=luck.random(), source=luck.choice(["user", "judge"]), app=luck.choice(["default", "default", "b"]),
        )
        for n in range(150)
    ]  # fmt: skip
    record(store, *exchanges)
    store.labels.add(labels)
    found = {rollout: value for group in formed(store, metrics) for rollout, value in group.rewards().items()}
    wanted = _one_by_one(exchanges, labels, metrics)
    assert found == pytest.approx(wanted), found.keys() ^ wanted.keys()


def _one_by_one(exchanges: list[Exchange], labels: list[Label], metrics: Metrics) -> dict[tuple[str, int], float]:
    """The rewards of all attempts, one group, as `rewards` works them out, from all labels at once."""
    by_id = {one.id: one for one in exchanges}
    choices: dict[str, int] = defaultdict(int)
    for one in exchanges:
        if one.outcome == "complete":
            choices[one.trajectory] = max(choices[one.trajectory], one.choices)
    placed = [
        Placed(one, by_id[one.exchange].trajectory, by_id[one.exchange].started_at)
        if one.exchange is not None
        else Placed(one, str(one.trajectory), None)
        for one in labels
        if one.app == "default"
    ]
    found = {one: reward for one, reward in rewards(placed, metrics).items() if one[1] < choices[one[0]]}
    kept = alike({one: reward.shares for one, reward in found.items()}, metrics)
    return {one: weighed({name: found[one].shares[name] for name in names}, metrics) for one, names in kept.items()}
