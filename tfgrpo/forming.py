"""Groups as metadata: which attempts at a task there are, and what labels make of each. Bodies are not looked at.

It is written for a million exchanges: rows are read once, in the order they lie in, and put together by dictionaries
here, as the store has no quicker way to join what has no order in common. Labels that are the only ones of their metric
on their target need nothing else to be a reward (see `verdicts`); only trajectories where labels compete are read
again, with all their labels. That all exchanges of a trajectory are of one set and one group is relied on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from tfgrpo.rewards import Reward, contrasts, rewards
from tfgrpo.store import Store
from tfgrpo.store.labels import TARGETS
from tfgrpo.store.learnable import TRUNCATED, UNREADABLE, Outline
from tfgrpo.teaching import EVERYONE, Teaching
from tfgrpo.verdicts import UNCLEAR, Verdict, Verdicts
from tfgrpo.weighing import REWARD_ONLY, Metrics, alike, weighed

Rollout: TypeAlias = tuple[str, int]
"""A trajectory and which of the answers of its first request it goes on with."""

AT_ONCE: Final = 2_000
"""How many trajectories with several labels are in memory at once with all that the labels say."""


class Attempt(msgspec.Struct, gc=False):
    """One trajectory, as far as its rows have been read. `said` is what its labels say, if need be of some only."""

    trajectory: str
    version: int
    choices: int
    mixed: bool
    """Its exchanges do not share one version."""
    truncated: bool
    said: Verdict | None
    key: str | None
    """The keyed hash of the key that made it; None: several did. Empty where nobody asks."""
    before: Attempt | None
    """The one read before it of the same group: a million lists would keep the collector of cycles busy."""


class Formed(msgspec.Struct, frozen=True, gc=False):
    """The attempts at one task under one version of a set (`version` None: each under several).

    `more` holds the values, by trajectory and choice, of those trajectories that are not worth what their labels say.
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
        return [attempt.said.value for attempt in self.attempts if attempt.said is not None]

    @property
    def contrasting(self) -> bool:
        """Whether the judged rollouts did not all earn the same. Most tasks are asked once: they cost no look."""
        return (len(self.attempts) > 1 or bool(self.more)) and contrasts(self.values)

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
        return {} if attempt.said is None else {0: attempt.said.value}


class _App:
    """What was read of one app: what labels say by target, its attempts by trajectory, of each group the newest."""

    def __init__(self) -> None:
        self.on_exchanges: dict[str, Verdict] = {}
        self.on_trajectories: dict[str, Verdict] = {}
        self.attempts: dict[str, Attempt] = {}
        self.newest: dict[str, Attempt] = {}
        self.unclear: set[str] = set()
        """Trajectories whose reward takes a look at all their labels."""
        self.unread: list[tuple[str, str]] = []
        """(trajectory, key) of each exchange that is no part of an attempt, but tells who made it as well."""

    def judge(self, verdicts: Verdicts, *, own_labels: bool) -> None:
        """Bring labels on trajectories to the attempts, and leave out their makers' own where these do not count."""
        if not own_labels:
            for trajectory, key in self.unread:
                told = self.attempts.get(trajectory)
                if told is not None and told.key != key:
                    told.key = None
            for attempt in self.attempts.values():
                if attempt.said is not None:
                    attempt.said = self._of_others(attempt, attempt.said, verdicts)
        for trajectory, said in self.on_trajectories.items():
            of = self.attempts.get(trajectory)
            counting = said if of is None or own_labels else self._of_others(of, said, verdicts)
            if of is None or counting is None:
                continue
            of.said = counting if of.said is None else verdicts.joined(counting, of.said)
            if of.said is UNCLEAR:
                self.unclear.add(trajectory)

    def _of_others(self, attempt: Attempt, said: Verdict, verdicts: Verdicts) -> Verdict | None:
        if attempt.key is None:
            self.unclear.add(attempt.trajectory)
            return UNCLEAR
        return said if said is UNCLEAR else verdicts.of_others(said, attempt.key)


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
    verdicts, keys = Verdicts(metrics), not teaching.own_labels
    _read_labels(store, apps, verdicts, list(metrics), keys=keys)
    _read_exchanges(apps, store.learnable.outlines(set_name=set_name, unnamed=unnamed, apps=teaching.apps, keys=keys))
    for name in sorted(apps):
        app = apps.pop(name)
        app.judge(verdicts, own_labels=teaching.own_labels)
        more = _more_rewards(store, name, sorted(app.unclear), metrics, teaching)
        for group, newest in app.newest.items():
            if usable := _usable(newest):
                yield _by_version(name, group, usable, _of_task(usable, more, metrics))


def labels_of(
    store: Store, app: str, trajectories: Sequence[str], metrics: Metrics, teaching: Teaching = EVERYONE
) -> dict[Rollout, Reward]:
    """Return what the labels on these trajectories come to, with what they say."""
    placed = store.labels.placed_on(app, trajectories)
    if not teaching.own_labels:
        keys = store.makers.keys_of(app, trajectories)
        placed = [one for one in placed if one.label.credential not in keys.get(one.trajectory, ())]
    return rewards(placed, metrics, share=teaching.max_share)


def _read_labels(
    store: Store, apps: Mapping[str, _App], verdicts: Verdicts, metrics: Sequence[str], *, keys: bool
) -> None:
    """Read all labels: of each target what they say. With `keys` that is also whose they are."""
    shared = verdicts.shared
    for target in TARGETS:
        of, known, count = None, dict[str, Verdict](), 0
        for row in store.labels.values(target, metrics, keys=keys):
            name, named, choice = row[0], row[1], row[2]
            if name != of:
                of, app = name, apps[name]
                known = app.on_exchanges if target == "exchange" else app.on_trajectories
                count = len(known)
            said = shared.get(row[3:]) or verdicts.alone(*row[3:])
            before = known.setdefault(named, said)
            if len(known) > count:
                count += 1
            elif not choice:
                known[named] = verdicts.joined(before, said)
            if choice:
                # It speaks of another answer than the first.
                known[named] = UNCLEAR


def _read_exchanges(apps: Mapping[str, _App], rows: Iterator[Outline]) -> None:
    """Put the exchanges of each app together to attempts, which take the labels on them.

    The one loop here that runs a million times: what is usual comes first, and looks up little.
    """
    keys: dict[str, str] = {}
    key = ""
    for row in rows:
        exchange, name, trajectory, group, version, choices, use = row[:7]
        app = apps[name]
        said = app.on_exchanges.pop(exchange, None)
        if len(row) > 7:  # noqa: PLR2004 - the key was asked for
            key = keys.setdefault(row[7], row[7])
        if use == UNREADABLE:
            app.unread.append((trajectory, key))
            if said is not None:
                app.unclear.add(trajectory)
            continue
        made = Attempt(trajectory, version, choices, False, use == TRUNCATED, said, key, None)
        attempt = app.attempts.setdefault(trajectory, made)
        if attempt is made:
            # All exchanges of a trajectory carry the group that its first one was given.
            made.before = app.newest.get(group)
            app.newest[group] = made
            if said is UNCLEAR:
                app.unclear.add(trajectory)
            continue
        if said is not None:
            if said is UNCLEAR or attempt.said is not None:
                # Of two labelled exchanges the later one counts.
                app.unclear.add(trajectory)
            attempt.said = said
        attempt.mixed |= version != attempt.version
        attempt.version = max(attempt.version, version)
        attempt.choices = max(attempt.choices, choices)
        attempt.truncated |= use == TRUNCATED
        if key != attempt.key:
            attempt.key = None


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
    """Return the values of those rollouts of a task that are not worth what their labels say (see `Formed.more`).

    `more` are the rewards of trajectories whose labels took a look. All rollouts are weighed by the same metrics (see
    `weighing`): where their labels are of others, that touches all.
    """
    looked = [one for one in attempts if one.trajectory in more] if more else []
    if not looked and (len(metrics) == 1 or _of_same_metrics(attempts)):
        return {}
    found = {
        (one.trajectory, choice): reward
        for one in looked
        for choice, reward in more[one.trajectory].items()
        if choice < one.choices
    }
    values: dict[str, dict[int, float]] = {one.trajectory: {} for one in looked}
    if len(metrics) == 1:
        for (trajectory, choice), reward in found.items():
            values[trajectory][choice] = reward.value
        return values
    for one in attempts:
        if one.said is not None and one.trajectory not in values:
            values[one.trajectory] = {}
            found[one.trajectory, 0] = one.said.reward()
    by = alike({one: reward.shares for one, reward in found.items()}, metrics) if found else {}
    for (trajectory, choice), names in by.items():
        shares = found[trajectory, choice].shares
        values[trajectory][choice] = weighed({name: shares[name] for name in names}, metrics)
    return values


def _of_same_metrics(attempts: Sequence[Attempt]) -> bool:
    names = None
    for one in attempts:
        if one.said is not None:
            if names is not None and one.said.names is not names:
                return False
            names = one.said.names
    return True


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
