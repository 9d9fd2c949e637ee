"""Whose traffic teaches a set, and whose labels count: what the configuration says of apps, as forming groups asks it.

Pure. An app teaches once it says so, and only the sets that it lists: a set that two apps list is the one way by which
what the traffic of one taught reaches the other.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tfgrpo.safety_settings import SafetySettings, TeachingApp
from tfgrpo.shares import ceiling

DEFAULT_APP: Final = "default"
"""The app of all traffic where none is configured."""


@dataclass(frozen=True, slots=True)
class Teaching:
    """The apps whose traffic teaches; None: all of them. `own_labels`: labels by the key that made the traffic count.

    One principal counts for at most `max_share` of a rollout's labels, of a group's rollouts, of a run's groups.
    """

    apps: frozenset[str] | None = None
    own_labels: bool = True
    by_user: bool = False
    """Whether end users whom an application names are principals of their own, and not its key alone."""
    max_share: float = 1.0


EVERYONE: Final = Teaching()


def of_set(set_name: str | None, apps: Sequence[TeachingApp], safety: SafetySettings) -> Teaching:
    """Return what holds for one set, or for all (None).

    Without configured apps the one there is teaches: whoever runs the proxy for their own use has opted in by training.
    With them it does not: it is the clients whose keys nobody knows.
    """
    teach = {app.name for app in apps if app.teaches and (set_name is None or set_name in app.sets)}
    return Teaching(
        frozenset(teach if apps else {DEFAULT_APP}),
        own_labels=safety.own_labels == "count",
        by_user=safety.principal == "end_user",
        max_share=safety.max_share,
    )


def speakers(rollouts: Mapping[str, int]) -> tuple[str, ...]:
    """Return whom a group counts for, from how many rollouts each principal made.

    One who made more than half of them speaks for it alone: a few rollouts of others do not make it theirs.
    """
    total = sum(rollouts.values())
    most = [one for one, count in rollouts.items() if 2 * count > total]
    return tuple(most or sorted(rollouts))


def bounded(makers: Mapping[str, str | None], share: float) -> list[str]:
    """Return which of the things that somebody made are taken, so that nobody made more than `share` of them.

    `makers` names who made each, None for those that several made. Of too many those are taken whose names have the
    smallest hashes: whoever names them does not choose.
    """
    by: dict[str | None, list[str]] = defaultdict(list)
    for name, maker in makers.items():
        by[maker].append(name)
    shared = by.pop(None, [])
    counts = [len(some) for some in by.values()] + [1] * len(shared)
    if not counts:
        return []
    most = ceiling(counts, share)
    return [*shared, *(name for some in by.values() for name in sorted(some, key=_lot)[:most])]


def _lot(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def left_out(exchanges: Mapping[str, int], set_name: str | None) -> str:
    """Say how many exchanges of which apps are left out, and what to do about it."""
    named = ", ".join(f"{app} ({count})" for app, count in sorted(exchanges.items()))
    what = "an app teaches" if set_name is None else f"an app teaches {set_name}"
    condition = "" if set_name is None else " and lists the set in its `sets`"
    return (
        f"{sum(exchanges.values())} exchanges are left out, for their apps do not teach: {named}; {what} when its "
        f"entry in `apps` says `teaches: true`{condition}"
    )
