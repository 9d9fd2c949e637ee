"""Whose traffic teaches a set, and whose labels count: what the configuration says of apps, as forming groups asks it.

Pure. An app teaches once it says so, and only the sets that it lists: a set that two apps list is the one way by which
what the traffic of one taught reaches the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tfgrpo.safety_settings import TeachingApp
from tfgrpo.types import Exchange

DEFAULT_APP: Final = "default"
"""The app of all traffic where none is configured."""


@dataclass(frozen=True, slots=True)
class Teaching:
    """The apps whose traffic teaches; None: all of them."""

    apps: frozenset[str] | None = None


EVERYONE: Final = Teaching()


def of_set(set_name: str | None, apps: Sequence[TeachingApp]) -> Teaching:
    """Return what holds for one set, or for all (None).

    Without configured apps the one there is teaches: whoever runs the proxy for their own use has opted in by training.
    With them it does not: it is the clients whose keys nobody knows.
    """
    if not apps:
        return Teaching(frozenset({DEFAULT_APP}))
    return Teaching(
        frozenset(app.name for app in apps if app.teaches and (set_name is None or set_name in app.sets)),
    )


def principal(exchange: Exchange) -> str:
    """Return who made an exchange: the key of a client, as its keyed hash, within its app."""
    return f"{exchange.app}/{exchange.credential}"


def speakers(rollouts: Mapping[str, int]) -> tuple[str, ...]:
    """Return whom a group counts for, from how many rollouts each principal made.

    One who made more than half of them speaks for it alone: a few rollouts of others do not make it theirs.
    """
    total = sum(rollouts.values())
    most = [one for one, count in rollouts.items() if 2 * count > total]
    return tuple(most or sorted(rollouts))


def left_out(exchanges: Mapping[str, int], set_name: str | None) -> str:
    """Say how many exchanges of which apps are left out, and what to do about it."""
    named = ", ".join(f"{app} ({count})" for app, count in sorted(exchanges.items()))
    what = "an app teaches" if set_name is None else f"an app teaches {set_name}"
    condition = "" if set_name is None else " and lists the set in its `sets`"
    return (
        f"{sum(exchanges.values())} exchanges are left out, for their apps do not teach: {named}; {what} when its "
        f"entry in `apps` says `teaches: true`{condition}"
    )
