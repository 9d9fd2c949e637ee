"""Which experiments a set's history holds, and from when to when trajectories are drawn in each. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import msgspec

from tfgrpo.types import Arm, Deployment

GRACE_SECONDS = 3600.0
"""How long after its end a proxy that could not reach the store may still draw in it."""


class Span(msgspec.Struct, frozen=True):
    """One experiment: its newest deployment, all its revisions, and when the last trajectory may have been drawn.

    `until` is infinite for the one that runs.
    """

    deployment: Deployment
    revisions: frozenset[int]
    until: float


def shares(deployment: Deployment) -> dict[Arm, float]:
    """Return the probability of each arm."""
    candidate, control = deployment.shares.get("candidate", 0.0), deployment.shares.get("control", 0.0)
    return {"candidate": candidate, "live": max(0.0, 1 - candidate - control), "control": control}


def compares(deployment: Deployment) -> bool:
    """Say whether more than one arm is drawn."""
    return sum(share > 0 for share in shares(deployment).values()) > 1


def spans(history: Sequence[Deployment]) -> list[Span]:
    """Return the experiments of a set's whole history (the newest first) that compare arms, the newest first."""
    found: list[Span] = []
    seen: set[int] = set()
    until = inf
    for one in history:
        if one.effective not in seen and compares(one):
            revisions = frozenset(other.revision for other in history if other.effective == one.effective)
            found.append(Span(one, revisions, until))
        seen.add(one.effective)
        until = one.created_at + GRACE_SECONDS
    return found
