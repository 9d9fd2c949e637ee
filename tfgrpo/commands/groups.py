"""`tfgrpo groups`: how the logged traffic falls into groups, why some teach nothing, and what to do about it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from tfgrpo.commands.output import emit, note, say
from tfgrpo.commands.session import configuration, metrics, opened, teaching
from tfgrpo.store import Store
from tfgrpo.teaching import EVERYONE, Teaching, left_out
from tfgrpo.traffic import Census, census
from tfgrpo.weighing import REWARD_ONLY, Metrics

REMEDIES: Final[Mapping[str, str]] = {
    "no label": "label their answers with POST /v1/feedback",
    "one rollout": (
        "ask such a task several times (n=4, or again), send related requests with one x-tfgrpo-group, or have fresh "
        "rollouts made: tfgrpo train --from replay"
    ),
    "one reward": "always right or always wrong: add harder or easier tasks, or labels between 0 and 1",
    "mixed": "rewards differ only across models or versions of the set: collect more under one of them",
}


def run(arguments: Namespace) -> int:
    """Print the census."""
    settings = configuration(arguments, "store", "metrics", "apps", "safety")
    with opened(settings) as store:
        counted, unnamed = of_set(store, arguments.set, metrics(settings), teaching(settings, arguments.set))
        if store.withdrawals.all():
            note("what was withdrawn is left out of these numbers: it teaches no more")
    if unnamed:
        note(unrecorded(arguments.set))
    if arguments.json:
        emit(as_json(counted))
    else:
        say(explain(counted, arguments.set))
    return 0


def of_set(
    store: Store, set_name: str | None, weighed_by: Metrics = REWARD_ONLY, taught: Teaching = EVERYONE
) -> tuple[Census, bool]:
    """Return the census of a set, or of traffic under no set (True) where the set has recorded none."""
    counted = census(store, set_name=set_name, metrics=weighed_by, teaching=taught)
    if set_name is None or counted.trajectories or counted.not_teaching:
        return counted, False
    without = census(store, unnamed=True, metrics=weighed_by, teaching=taught)
    return (without, True) if without.trajectories or without.not_teaching else (counted, False)


def unrecorded(set_name: str) -> str:
    """Return what to tell when a set has no traffic of its own."""
    return f"nothing is recorded under the set {set_name}; traffic recorded under no set is used"


def without_bodies(counted: Census) -> str:
    """Say how many trajectories are left out because their bodies are not there."""
    return f"{counted.without_bodies} trajectories are left out: their bodies were not recorded, or reached their age"


def as_json(counted: Census) -> dict[str, Any]:
    """Return a census as JSON."""
    return {
        "trajectories": counted.trajectories,
        "labelled": counted.labelled,
        "groups": counted.groups,
        "contrasting": counted.contrasting,
        "not_contrasting": dict(counted.not_contrasting),
        "without_bodies": counted.without_bodies,
        "not_teaching": dict(counted.not_teaching),
        "near": [{"left": one.left, "right": one.right} for one in counted.near],
    }


def explain(counted: Census, set_name: str | None = None) -> str:
    """Return a census as people read it."""
    lines = [
        f"{counted.trajectories} trajectories, {counted.labelled} of them labelled, in {counted.groups} groups",
        f"{counted.contrasting} groups contrast and can be learned from",
    ]
    for reason, count in counted.not_contrasting.items():
        if count:
            remedy = REMEDIES.get(reason)
            lines.append(f"{count} do not: {reason}" + (f" ({remedy})" if remedy else ""))
    if counted.without_bodies:
        lines.append(without_bodies(counted))
    if counted.not_teaching:
        lines.append(left_out(counted.not_teaching, set_name))
    lines += [
        f"nearly one task, but for {near.left!r} against {near.right!r} (see grouping.ignore)" for near in counted.near
    ]
    if not counted.trajectories and not counted.without_bodies and not counted.not_teaching:
        lines.append("nothing is recorded yet: send requests through the proxy, and label their answers")
    return "\n".join(lines)
