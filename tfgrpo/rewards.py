"""Labels to rewards: what those of a rollout come to, and whether a group's differ. Pure: no store, no model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from tfgrpo.shares import weights
from tfgrpo.types import Label
from tfgrpo.weighing import REWARD_ONLY, Metrics, weighed

EPSILON = 1e-9
"""A group contrasts when its rewards lie further apart than this."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A label with the trajectory it speaks of and the start of its exchange (None: it names the trajectory)."""

    label: Label
    trajectory: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Reward:
    """What the labels of a rollout come to. `shares` holds what each metric says of it, in [0, 1]."""

    value: float
    comments: tuple[str, ...] = ()
    reference: str | None = None
    shares: Mapping[str, float] = field(default_factory=dict)


def rewards(
    placed: Iterable[Placed], metrics: Metrics = REWARD_ONLY, *, share: float = 1.0
) -> dict[tuple[str, int], Reward]:
    """Return the reward of each labelled rollout, by (trajectory, choice).

    The latest label per (target, metric, source) counts. For each of `metrics`, a rollout has the mean over sources of
    the counting labels on its trajectory, or without any of those on its last labelled exchange; its reward is the
    weighted mean of its metrics. Of several keys that judge a rollout each counts for at most `share`, under however
    many sources it speaks. Where that is less than all, no key's label takes the place of another's: which labels
    count is told for each key by itself.
    """
    apart = share < 1
    latest: dict[tuple[str, int, float | None, str, str, str], Placed] = {}
    for one in sorted(placed, key=lambda one: (one.label.created_at, one.label.feedback_id)):
        label = one.label
        if label.metric in metrics:
            target = f"{one.trajectory}\0{label.exchange or ''}"
            key = label.credential if apart else ""
            latest[(target, label.choice, one.at, label.metric, label.source, key)] = one
    by_rollout: dict[tuple[str, int], list[Placed]] = defaultdict(list)
    for one in latest.values():
        by_rollout[(one.trajectory, one.label.choice)].append(one)
    return {rollout: _reward(some, metrics, share) for rollout, some in by_rollout.items()}


def contrasts(values: Iterable[float]) -> bool:
    """Say whether rewards differ: max - min > epsilon."""
    known = list(values)
    return bool(known) and max(known) - min(known) > EPSILON


def _deciding(placed: list[Placed]) -> list[Placed]:
    """The labels on the trajectory itself, or without any those on its last labelled exchange."""
    own = [one for one in placed if one.at is None]
    if own:
        return own
    last = max((one.at or 0.0, one.label.exchange or "") for one in placed)
    return [one for one in placed if (one.at or 0.0, one.label.exchange or "") == last]


def _reward(placed: Iterable[Placed], metrics: Metrics, share: float) -> Reward:
    by_judge: dict[tuple[str, str], list[Placed]] = defaultdict(list)
    for one in placed:
        by_judge[one.label.metric, one.label.credential if share < 1 else ""].append(one)
    deciding: dict[str, list[Label]] = defaultdict(list)
    for (name, _), some in by_judge.items():
        deciding[name] += [one.label for one in _deciding(some)]
    shares = {
        name: fmean(
            [metrics[name].share(label.value) for label in some], weights([label.credential for label in some], share)
        )
        for name, some in deciding.items()
    }
    newest = sorted((label for some in deciding.values() for label in some), key=lambda label: label.created_at)
    references = [label.reference for label in newest if label.reference is not None]
    return Reward(
        value=weighed(shares, metrics),
        comments=tuple(label.comment for label in newest if label.comment),
        reference=references[-1] if references else None,
        shares=shares,
    )
