"""Groups as metadata: which attempts at a task there are, and what labels make of each. Bodies are not looked at.

It is written for a million exchanges: rows are read once, in the order they lie in, and put together by dictionaries
here, as the store has no quicker way to join what has no order in common. A label that is alone on its target needs
nothing else to be a reward; only trajectories with several are read again, with all their labels. Where several metrics
make the reward, that is all that are labelled, and takes longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from tfgrpo.rewards import Placed, Reward, rewards
from tfgrpo.store import Store
from tfgrpo.store.labels import TARGETS
from tfgrpo.store.learnable import TRUNCATED, UNREADABLE, Outline
from tfgrpo.teaching import EVERYONE, Teaching
from tfgrpo.types import Label
from tfgrpo.weighing import REWARD_ONLY, Metrics, alike, weighed

Rollout: TypeAlias = tuple[str, int]
"""A trajectory and which of the answers of its first request it goes on with."""

AT_ONCE: Final = 2_000
"""How many trajectories with several labels are in memory at once with all that the labels say."""

_SEVERAL: Final = -1.0
"""Stands for the reward of a target with several labels, or one on another choice than the first."""


class Attempt(msgspec.Struct, gc=False):
    """One trajectory, as far as its rows have been read. `reward` is that of its only label."""

    trajectory: str
    version: int
    choices: int
    mixed: bool
    """Its exchanges do not share one version."""
    truncated: bool
    reward: float | None
    before: Attempt | None
    """The one read before it of the same group: a million lists would keep the collector of cycles busy."""


class Formed(msgspec.Struct, frozen=True, gc=False):
    """The attempts at one task under one version of a set (`version` None: each under several).

    `more` holds the values, by trajectory and choice, of the task's trajectories with several labels.
    """

    app: str
    group: str
    version: int | None
    attempts: Sequence[Attempt]
    more: Mapping[str, Mapping[int, float]]

    @property
    def key(self) -> str:
        """The group's name."""
        return f"{self.group}@{'mixed' if self.version is None else self.version}"

    @property
    def size(self) -> int:
        """How many rollouts there are, judged or not."""
        return sum([attempt.choices for attempt in self.attempts])

    @property
    def values(self) -> list[float]:
        """What the judged rollouts earned."""
        if self.more:
            return list(self.rewards().values())
        return [attempt.reward for attempt in self.attempts if attempt.reward is not None]

    @property
    def first(self) -> str:
        """The trajectory whose name comes first."""
        return min(attempt.trajectory for attempt in self.attempts)

    @property
    def rollouts(self) -> list[Rollout]:
        """All rollouts, judged or not, in order."""
        return sorted((one.trajectory, choice) for one in self.attempts for choice in range(one.choices))

    def rewards(self, skip: Collection[str] = ()) -> dict[Rollout, float]:
        """Return what the judged rollouts earned, but for trajectories in `skip`."""
        kept = [attempt for attempt in self.attempts if attempt.trajectory not in skip]
        return {(attempt.trajectory, choice): value for attempt in kept for choice, value in self._of(attempt).items()}

    def _of(self, attempt: Attempt) -> Mapping[int, float]:
        more = self.more.get(attempt.trajectory)
        if more is not None:
            return more
        return {} if attempt.reward is None else {0: attempt.reward}


class _App:
    """What was read of one app: its lone labels by target, its attempts by trajectory, of each group the newest."""

    def __init__(self) -> None:
        self.on_exchanges: dict[str, float] = {}
        self.on_trajectories: dict[str, float] = {}
        self.attempts: dict[str, Attempt] = {}
        self.newest: dict[str, Attempt] = {}
        self.several: set[str] = set()
        """Trajectories whose reward takes more than a look at one label."""

    def judged(self) -> None:
        """Put labels on trajectories to the attempts."""
        for trajectory, value in self.on_trajectories.items():
            attempt = self.attempts.get(trajectory)
            if attempt is not None:
                if value == _SEVERAL or attempt.reward is not None:
                    self.several.add(trajectory)
                attempt.reward = value


def form(
    store: Store,
    *,
    set_name: str | None = None,
    unnamed: bool = False,
    metrics: Metrics = REWARD_ONLY,
    teaching: Teaching = EVERYONE,
) -> Iterator[list[Formed]]:
    """Yield the groups of one set's traffic, of that under no set (`unnamed`), or of all: one list for each task.

    `teaching` says of which apps. A list has more than one entry when the task was tried under several versions.
    """
    apps: dict[str, _App] = defaultdict(_App)
    # Whose a lone label is, only a look at the whole tells.
    _read_labels(store, apps, metrics, alone=teaching.own_labels and len(metrics) == 1)
    _read_exchanges(apps, store.learnable.outlines(set_name=set_name, unnamed=unnamed, apps=teaching.apps))
    for name in sorted(apps):
        app = apps.pop(name)
        app.judged()
        more = _more_rewards(store, name, sorted(app.several), metrics, teaching)
        for group, newest in app.newest.items():
            if usable := _usable(newest):
                yield _by_version(name, group, usable, _of_task(usable, more, metrics))


def labels_of(
    store: Store, app: str, trajectories: Sequence[str], metrics: Metrics, teaching: Teaching = EVERYONE
) -> dict[Rollout, Reward]:
    """Return what the labels on these trajectories come to, with what they say."""
    placed = store.labels.placed_on(app, trajectories)
    if not teaching.own_labels:
        keys = store.traffic.keys_of(app, trajectories)
        placed = [one for one in placed if one.label.credential not in keys.get(one.trajectory, ())]
    return rewards(placed, metrics, share=teaching.max_share)


def _read_labels(store: Store, apps: Mapping[str, _App], metrics: Metrics, *, alone: bool) -> None:
    """Read all labels; with `alone` one that is alone on its target is its reward."""
    worth: dict[tuple[str, float], float] = {}
    for target in TARGETS:
        for name, named, choice, metric, value in store.labels.values(target, list(metrics)):
            reward = worth.get((metric, value))
            if reward is None:
                reward = worth[metric, value] = _worth(metric, value, metrics)
            lone = apps[name].on_exchanges if target == "exchange" else apps[name].on_trajectories
            known = len(lone)
            lone.setdefault(named, reward)
            if choice or len(lone) == known or not alone:
                lone[named] = _SEVERAL


def _worth(metric: str, value: float, metrics: Metrics) -> float:
    """Return the reward that a label comes to when it is alone."""
    alone = Label("", "", None, "", 0, metric, value, "", "", 0.0)
    return rewards([Placed(alone, "", None)], metrics)["", 0].value


def _read_exchanges(apps: Mapping[str, _App], rows: Iterator[Outline]) -> None:
    """Put the exchanges of each app together to attempts, which take the labels on them.

    The one loop here that runs a million times: what is usual comes first, and looks up little.
    """
    for exchange, name, trajectory, group, version, choices, use in rows:
        app = apps[name]
        reward = app.on_exchanges.pop(exchange, None)
        if use == UNREADABLE:
            if reward is not None:
                app.several.add(trajectory)
            continue
        made = Attempt(trajectory, version, choices, False, use == TRUNCATED, reward, None)
        attempt = app.attempts.setdefault(trajectory, made)
        if attempt is made:
            # All exchanges of a trajectory carry the group that its first one was given.
            made.before = app.newest.get(group)
            app.newest[group] = made
            if reward == _SEVERAL:
                app.several.add(trajectory)
            continue
        if reward is not None:
            # What is labelled more than once, or not on its first row, is looked at as a whole.
            app.several.add(trajectory)
        attempt.mixed |= version != attempt.version
        attempt.version = max(attempt.version, version)
        attempt.choices = max(attempt.choices, choices)
        attempt.truncated |= use == TRUNCATED


def _more_rewards(
    store: Store, app: str, trajectories: Sequence[str], metrics: Metrics, teaching: Teaching
) -> dict[str, dict[int, Reward]]:
    found: dict[str, dict[int, Reward]] = {trajectory: {} for trajectory in trajectories}
    for at in range(0, len(trajectories), AT_ONCE):
        some = labels_of(store, app, trajectories[at : at + AT_ONCE], metrics, teaching)
        for (trajectory, choice), reward in some.items():
            found[trajectory][choice] = Reward(reward.value, shares=reward.shares)
    return found


def _of_task(
    attempts: Sequence[Attempt], more: Mapping[str, Mapping[int, Reward]], metrics: Metrics
) -> Mapping[str, Mapping[int, float]]:
    """Return the values of a task's rollouts with several labels, all by the same metrics (see `weighing`)."""
    if not more:
        return {}
    several = [one for one in attempts if one.trajectory in more]
    found = {
        (one.trajectory, choice): reward
        for one in several
        for choice, reward in more[one.trajectory].items()
        if choice < one.choices
    }
    values: dict[str, dict[int, float]] = {one.trajectory: {} for one in several}
    by = alike({one: reward.shares for one, reward in found.items()}, metrics) if len(metrics) > 1 and found else None
    for (trajectory, choice), reward in found.items():
        if by is None:
            values[trajectory][choice] = reward.value
        elif names := by.get((trajectory, choice)):
            values[trajectory][choice] = weighed({name: reward.shares[name] for name in names}, metrics)
    return values


def _usable(newest: Attempt) -> list[Attempt]:
    found = []
    attempt: Attempt | None = newest
    while attempt is not None:
        if not attempt.truncated:
            found.append(attempt)
        attempt = attempt.before
    return found


def _by_version(
    app: str, group: str, attempts: Sequence[Attempt], more: Mapping[str, Mapping[int, float]]
) -> list[Formed]:
    first: int | None = attempts[0].version
    for attempt in attempts:
        if attempt.version != first or attempt.mixed:
            break
    else:
        return [Formed(app, group, first, attempts, more)]
    versions: dict[int | None, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        versions[None if attempt.mixed else attempt.version].append(attempt)
    return [Formed(app, group, version, some, more) for version, some in versions.items()]
