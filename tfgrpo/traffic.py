"""What was logged, as groups to learn from: the store's rows, read by the dialects, put together by `trajectories`.

It calls no model and changes nothing. Forming groups looks at metadata and labels alone; bodies are read for the
groups that contrast.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfgrpo import dialects, near_misses, weighing
from tfgrpo.modes import differs
from tfgrpo.store import Attempt, Store
from tfgrpo.trajectories import Reward, Turn, contrasts, conversation, opening, rewards
from tfgrpo.types import Bodies, Exchange, Group, Message, Rollout, Task
from tfgrpo.weighing import REWARD_ONLY, Metrics, weighed

REASONS = ("no label", "one rollout", "one reward", "mixed")
"""Why a group does not contrast: nothing in it is labelled; one rollout is; the rewards are equal; they differ only
across models or versions of the set."""

MOST_COMPARED = 200
"""How many tasks with one rollout are compared for near-equal first requests."""


@dataclass(frozen=True, slots=True)
class Census:
    """How the logged traffic falls into groups. `near` shows tasks that would be one but for a few words."""

    trajectories: int
    labelled: int
    groups: int
    contrasting: int
    not_contrasting: Mapping[str, int]
    near: tuple[near_misses.NearMiss, ...] = ()


@dataclass(frozen=True, slots=True)
class _Formed:
    """A group as metadata: its attempts (trajectory, choice), each with its reward where it has one."""

    key: str
    attempts: tuple[tuple[Attempt, int], ...]
    rewards: Mapping[tuple[str, int], Reward] = field(default_factory=dict)

    @property
    def values(self) -> list[float]:
        return [reward.value for reward in self.rewards.values()]


def census(
    store: Store,
    *,
    set_name: str | None = None,
    unnamed: bool = False,
    metrics: Metrics = REWARD_ONLY,
) -> Census:
    """Count the groups of one set's traffic, of the traffic under no set (`unnamed`), or of all."""
    formed, mixed = _formed(store, set_name=set_name, unnamed=unnamed, metrics=metrics)
    reasons = Counter(dict.fromkeys(REASONS, 0))
    contrasting = 0
    lonely = []
    for group in formed:
        if contrasts(group.values):
            contrasting += 1
            continue
        reason = _reason(group, mixed)
        reasons[reason] += 1
        if len(group.attempts) == 1:
            lonely.append(group)
    return Census(
        trajectories=sum(len(group.attempts) for group in formed),
        labelled=sum(len(group.rewards) for group in formed),
        groups=len(formed),
        contrasting=contrasting,
        not_contrasting=dict(reasons),
        near=near_misses.find(_questions(store, lonely[:MOST_COMPARED])),
    )


def labelled_groups(
    store: Store,
    *,
    set_name: str | None = None,
    unnamed: bool = False,
    skip: Collection[str] = (),
    alike: bool = False,
    metrics: Metrics = REWARD_ONLY,
) -> list[Group]:
    """Return the groups that contrast, by key, with what their rollouts said and what labels said of them.

    With `alike` those too whose rewards do not differ.

    Our own block is taken out of every message. Trajectories in `skip` (a run learned from them already) are left
    out; what remains of a group must contrast by itself. Rollouts whose bodies are gone or cannot be read are left
    out too.
    """
    formed, _ = _formed(store, set_name=set_name, unnamed=unnamed, metrics=metrics)
    groups = []
    for group in formed:
        kept = {one: reward for one, reward in group.rewards.items() if one[0] not in skip}
        if alike or contrasts(reward.value for reward in kept.values()):
            groups.append(replace(group, rewards=kept))
    loaded = (_load(store, group, group.rewards) for group in groups)
    return [
        group
        for group in loaded
        if group is not None and (alike or contrasts(rollout.reward or 0.0 for rollout in group.rollouts))
    ]


def answered_groups(
    store: Store, *, set_name: str | None = None, unnamed: bool = False, skip: Collection[str] = ()
) -> list[Group]:
    """Return the groups whose rollouts answer differently, by key, whatever labels say of them: without rewards.

    What is left out is left out of `labelled_groups` as well.
    """
    formed, _ = _formed(store, set_name=set_name, unnamed=unnamed, metrics=REWARD_ONLY)
    groups = []
    for group in formed:
        kept = [(one.trajectory, choice) for one, choice in group.attempts if not one.mixed]
        chosen: dict[tuple[str, int], Reward | None] = dict.fromkeys(one for one in kept if one[0] not in skip)
        found = _load(store, group, chosen) if len(chosen) > 1 else None
        if found is not None and differs(found):
            groups.append(found)
    return groups


def _formed(store: Store, *, set_name: str | None, unnamed: bool, metrics: Metrics) -> tuple[list[_Formed], set[str]]:
    """Return the groups by key, and the group hashes whose rewards differ only across versions."""
    placed = defaultdict(list)
    for app, one in store.labels.placed(set_name=set_name, unnamed=unnamed):
        placed[app].append(one)
    by_app = {app: rewards(some, metrics) for app, some in placed.items()}
    attempts: dict[str, list[tuple[Attempt, int]]] = defaultdict(list)
    pooled: dict[str, dict[tuple[str, int], Reward]] = defaultdict(dict)
    for attempt in store.traffic.attempts(set_name=set_name, unnamed=unnamed):
        key = f"{attempt.group}@{'mixed' if attempt.mixed else attempt.version}"
        for choice in range(attempt.choices):
            attempts[key].append((attempt, choice))
            reward = by_app.get(attempt.app, {}).get((attempt.trajectory, choice))
            if reward is not None:
                pooled[attempt.group][attempt.trajectory, choice] = reward
    # All of a task by the same metrics, whichever version its rollouts ran under.
    pooled = {group: _alike(some, metrics) for group, some in pooled.items()}
    formed = [_Formed(key, tuple(attempts[key]), _own(attempts[key], pooled)) for key in sorted(attempts)]
    return formed, {group for group, some in pooled.items() if contrasts(reward.value for reward in some.values())}


def _own(
    attempts: Iterable[tuple[Attempt, int]], pooled: Mapping[str, Mapping[tuple[str, int], Reward]]
) -> dict[tuple[str, int], Reward]:
    """Return the rewards of these attempts, but for those that are mixed."""
    named = ((attempt.group, (attempt.trajectory, choice)) for attempt, choice in attempts if not attempt.mixed)
    return {one: pooled[group][one] for group, one in named if one in pooled.get(group, {})}


def _alike(found: dict[tuple[str, int], Reward], metrics: Metrics) -> dict[tuple[str, int], Reward]:
    """Return the rewards of a group, all by the same metrics; without those of rollouts that lack one of these."""
    if len(metrics) == 1:
        return found
    by = weighing.alike({one: reward.shares for one, reward in found.items()}, metrics)
    return {
        one: replace(reward, value=weighed({name: reward.shares[name] for name in by[one]}, metrics))
        for one, reward in found.items()
        if one in by
    }


def _reason(group: _Formed, mixed: Collection[str]) -> str:
    if group.rewards and group.attempts[0][0].group in mixed:
        return "mixed"
    if not group.rewards:
        return "mixed" if group.attempts[0][0].mixed else "no label"
    return "one rollout" if len(group.rewards) == 1 else "one reward"


def _questions(store: Store, groups: Sequence[_Formed]) -> list[str]:
    questions = []
    for group in groups:
        attempt = group.attempts[0][0]
        first = store.traffic.trajectory(attempt.app, attempt.trajectory)[:1]
        turns = turns_of(first, store.traffic.bodies([one.id for one in first]), 0)
        questions.append("\n".join(message.text for message in opening(turns)))
    return questions


def _load(store: Store, group: _Formed, chosen: Mapping[tuple[str, int], Reward | None]) -> Group | None:
    """Return the chosen rollouts of a group, by (trajectory, choice), with what is said of them where anything is."""
    attempt = group.attempts[0][0]
    wanted = sorted({trajectory for trajectory, _ in chosen})
    exchanges = store.traffic.of_trajectories(attempt.app, wanted)
    bodies = store.traffic.bodies([one.id for some in exchanges.values() for one in some])
    task: tuple[Message, ...] = ()
    rollouts = []
    for (trajectory, choice), reward in sorted(chosen.items(), key=lambda item: item[0]):
        turns = turns_of(exchanges.get(trajectory, []), bodies, choice)
        messages, asked = conversation(turns), opening(turns)
        if not messages or len(messages) == len(asked):
            continue
        task = task or asked
        name = f"{trajectory}.{choice}" if choice else trajectory
        value, comments = (None, ()) if reward is None else (reward.value, reward.comments)
        rollouts.append(Rollout(name, messages[len(asked) :], reward=value, comments=comments))
    if not rollouts:
        return None
    references = [reward.reference for reward in chosen.values() if reward and reward.reference is not None]
    return Group(
        key=group.key,
        task=Task(group.key, task, references[-1] if references else None),
        model=attempt.model,
        set=attempt.set,
        version=attempt.version,
        rollouts=tuple(rollouts),
    )


def turns_of(exchanges: Iterable[Exchange], bodies: Mapping[str, Bodies], choice: int = 0) -> list[Turn]:
    """Return the turns of one choice: up to and with the exchange that asked for several, else all of them."""
    turns = []
    for exchange in exchanges:
        turn = _turn(exchange, bodies.get(exchange.id), choice if exchange.choices > 1 else 0)
        if turn is not None:
            turns.append(turn)
        if choice and exchange.choices > 1:
            break
    return turns


def _turn(exchange: Exchange, kept: Bodies | None, choice: int) -> Turn | None:
    dialect = dialects.by_name(exchange.dialect)
    if dialect is None or kept is None or exchange.outcome != "complete" or exchange.truncated:
        return None
    asked = dialects.decoded(kept.request, kept.request_encoding)
    answered = dialects.decoded(kept.response, kept.response_encoding)
    if asked is None or answered is None:
        return None
    request = dialect.read_request(asked)
    response = dialect.read_response(answered, kept.response_type)
    if request is None or response is None or not response.complete:
        return None
    answer = next((one.message for one in response.choices if one.index == choice), None)
    return None if answer is None else Turn(request.messages, answer)
