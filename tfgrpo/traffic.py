"""What was logged, as groups to learn from: the store's rows, read by the dialects, put together by `trajectories`.

It calls no model and changes nothing. Forming groups looks at metadata and labels alone; bodies are read for the
groups that contrast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from operator import attrgetter

from tfgrpo import dialects, near_misses
from tfgrpo.dialects.tools import offered
from tfgrpo.forming import Formed, form, labels_of
from tfgrpo.forming import Rollout as Attempted
from tfgrpo.modes import differs
from tfgrpo.principals import Principals
from tfgrpo.rewards import Reward, contrasts
from tfgrpo.store import Store
from tfgrpo.teaching import EVERYONE, Teaching, bounded, speakers
from tfgrpo.trajectories import Turn, conversation, opening
from tfgrpo.types import Bodies, Exchange, Group, Message, Rollout, Task
from tfgrpo.weighing import REWARD_ONLY, Metrics

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
    without_bodies: int = 0
    """Trajectories that are left out because a body was not recorded, or has reached its age."""
    not_teaching: Mapping[str, int] = field(default_factory=dict)
    """Exchanges that are left out because their app does not teach, by app."""


def census(
    store: Store,
    *,
    set_name: str | None = None,
    unnamed: bool = False,
    metrics: Metrics = REWARD_ONLY,
    teaching: Teaching = EVERYONE,
) -> Census:
    """Count the groups of one set's traffic, of the traffic under no set (`unnamed`), or of all."""
    reasons = Counter(dict.fromkeys(REASONS, 0))
    trajectories = labelled = contrasting = 0
    lonely = []
    for versions in form(store, set_name=set_name, unnamed=unnamed, metrics=metrics, teaching=teaching):
        pooled = len(versions) > 1 and contrasts(value for group in versions for value in group.values)
        for group in versions:
            size, values = group.size, group.values if group.version is not None else []
            trajectories += size
            labelled += len(values)
            if len(values) > 1 and contrasts(values):
                contrasting += 1
                continue
            reasons[_reason(group, values, mixed=pooled)] += 1
            if size == 1:
                lonely.append(group)
    return Census(
        trajectories=trajectories,
        labelled=labelled,
        groups=contrasting + reasons.total(),
        contrasting=contrasting,
        not_contrasting=dict(reasons),
        near=near_misses.find(_questions(store, nsmallest(MOST_COMPARED, lonely, key=attrgetter("group")))),
        without_bodies=store.learnable.without_bodies(set_name=set_name, unnamed=unnamed, apps=teaching.apps),
        not_teaching={}
        if teaching.apps is None
        else store.makers.besides(teaching.apps, set_name=set_name, unnamed=unnamed),
    )


def labelled_groups(
    store: Store,
    *,
    set_name: str | None = None,
    unnamed: bool = False,
    skip: Collection[str] = (),
    metrics: Metrics = REWARD_ONLY,
    alike: bool = False,
    teaching: Teaching = EVERYONE,
) -> list[Group]:
    """Return the groups that contrast, by key, with what their rollouts said and what labels said of them.

    With `alike` those too whose rewards do not differ.

    Our own block is taken out of every message. Trajectories in `skip` (a run learned from them already) are left
    out; what remains of a group must contrast by itself. Rollouts whose bodies are gone or cannot be read are left
    out too.
    """
    formed = groups_worth(
        store, set_name=set_name, unnamed=unnamed, skip=skip, metrics=metrics, alike=alike, teaching=teaching
    )
    chosen = ((group, _chosen(store, group, skip=skip, metrics=metrics, teaching=teaching)) for group in formed)
    loader = _Loader(store, teaching)
    loaded = (loader.load(group, rollouts) for group, rollouts in chosen)
    return [
        group
        for group in loaded
        if group is not None and (alike or contrasts(rollout.reward or 0.0 for rollout in group.rollouts))
    ]


def groups_worth(
    store: Store,
    *,
    set_name: str | None = None,
    unnamed: bool = False,
    skip: Collection[str] = (),
    metrics: Metrics = REWARD_ONLY,
    alike: bool = False,
    teaching: Teaching = EVERYONE,
) -> list[Formed]:
    """Return as metadata, by key, the groups that contrast without the trajectories in `skip`; `alike`: all."""
    found = (
        group
        for versions in form(store, set_name=set_name, unnamed=unnamed, metrics=metrics, teaching=teaching)
        for group in versions
        if group.version is not None
        and (alike or (contrasts(group.rewards(skip).values()) if skip else group.contrasting))
    )
    return sorted(found, key=lambda group: group.key)


def answered_groups(
    store: Store,
    *,
    set_name: str | None = None,
    unnamed: bool = False,
    skip: Collection[str] = (),
    teaching: Teaching = EVERYONE,
) -> list[Group]:
    """Return the groups whose rollouts answer differently, by key, whatever labels say of them: without rewards.

    What is left out is left out of `labelled_groups` as well.
    """
    groups, loader = [], _Loader(store, teaching)
    for group in groups_worth(store, set_name=set_name, unnamed=unnamed, alike=True, teaching=teaching):
        chosen: dict[Attempted, Reward | None] = dict.fromkeys(one for one in group.rollouts if one[0] not in skip)
        found = loader.load(group, chosen) if len(chosen) > 1 else None
        if found is not None and differs(found):
            groups.append(found)
    return groups


def _chosen(
    store: Store, group: Formed, *, skip: Collection[str], metrics: Metrics, teaching: Teaching
) -> dict[Attempted, Reward]:
    judged = group.rewards(skip)
    found = labels_of(store, group.app, sorted({trajectory for trajectory, _ in judged}), metrics, teaching)
    # What a label comes to may depend on those of the whole task, so the value is that of the group.
    return {rollout: replace(found[rollout], value=judged[rollout]) for rollout in sorted(judged)}


def _reason(group: Formed, values: Sequence[float], *, mixed: bool) -> str:
    if group.version is None or (values and mixed):
        return "mixed"
    if not values:
        return "no label"
    return "one rollout" if len(values) == 1 else "one reward"


def _questions(store: Store, groups: Sequence[Formed]) -> list[str]:
    questions = []
    for group in groups:
        first = store.traffic.trajectory(group.app, group.first)[:1]
        turns = turns_of(first, store.traffic.bodies([one.id for one in first]), 0)
        questions.append("\n".join(message.text for message in opening(turns)))
    return questions


class _Loader:
    """Reads what the rollouts of groups said."""

    def __init__(self, store: Store, teaching: Teaching) -> None:
        self._store = store
        self._principals = Principals(store, teaching)
        self._share = teaching.max_share

    def load(self, group: Formed, chosen: Mapping[Attempted, Reward | None]) -> Group | None:
        """Return the chosen rollouts of a group, by (trajectory, choice), with what is said of them where anything is.

        Of several principals none has more than its share of them.
        """
        traffic = self._store.traffic
        wanted = sorted({trajectory for trajectory, _ in chosen})
        exchanges = traffic.of_trajectories(group.app, wanted)
        bodies = traffic.bodies([one.id for some in exchanges.values() for one in some])
        task: tuple[Message, ...] = ()
        rollouts = []
        makers: dict[str, str | None] = {}
        references: dict[str, str] = {}
        for (trajectory, choice), reward in sorted(chosen.items(), key=lambda item: item[0]):
            turns = turns_of(exchanges.get(trajectory, []), bodies, choice)
            messages, asked = conversation(turns), opening(turns)
            if not messages or len(messages) == len(asked):
                continue
            task = task or asked
            name = f"{trajectory}.{choice}" if choice else trajectory
            value, comments = (None, ()) if reward is None else (reward.value, reward.comments)
            rollouts.append(Rollout(name, messages[len(asked) :], reward=value, comments=comments))
            first = exchanges[trajectory][0]
            makers[name] = self._principals.of(first, bodies.get(first.id))
            if reward is not None and reward.reference is not None:
                references[name] = reward.reference
        if not rollouts:
            return None
        taken = set(bounded(makers, self._share))
        rollouts = [one for one in rollouts if one.trajectory in taken]
        known = [exchange for some in exchanges.values() for exchange in some]
        right = [text for name, text in references.items() if name in taken]
        said = (*task, *(message for rollout in rollouts for message in rollout.messages))
        return Group(
            key=group.key,
            task=Task(group.key, task, right[-1] if right else None, tools=_tools(bodies.values(), said)),
            model=max((one.model for one in known if one.model is not None), default=None),
            set=known[0].set,
            version=group.version or 0,
            rollouts=tuple(rollouts),
            principals=speakers(Counter(maker for name, maker in makers.items() if maker and name in taken)),
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


def _tools(bodies: Iterable[Bodies], said: Iterable[Message]) -> frozenset[str] | None:
    """Return the names in the tools that requests offered; None where none did and tools were called: nobody knows."""
    requests = (dialects.decoded(kept.request, kept.request_encoding) for kept in bodies)
    names = frozenset(name for body in requests if body is not None for name in offered(body))
    return None if not names and any(message.tool_calls for message in said) else names
