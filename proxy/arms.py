"""What a request is given: its arm and the version that is injected. Pure: it decides and does nothing.

It does not know how a request is matched to a trajectory, nor what a version says.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tfgrpo import experiment
from tfgrpo.types import EMPTY_VERSION, Arm, Assignment, Deployment

Pin = int | Literal["none"] | None
"""What the request asks for by header: a version, no injection, or nothing."""


class Treatment(msgspec.Struct, frozen=True):
    """An arm, the version to inject (0: nothing) and how they came about.

    `probability` is that of the arm drawn, None when nothing was drawn; `revision` the deployment's, 0 for none.
    """

    arm: Arm
    version: int = EMPTY_VERSION
    probability: float | None = None
    revision: int = 0


def asked(pin: Pin, *, injectable: bool) -> Treatment | None:
    """Return what the request itself settles, before any draw; None when it settles nothing."""
    if not injectable or pin == "none":
        return Treatment("none")
    return None if pin is None else Treatment("pinned", pin)


def first(
    secret: bytes, trajectory: str, deployment: Deployment | None, *, lost: bool, full: bool = False
) -> Treatment:
    """Return what a new trajectory is given. `lost`: it continues something that was not found again.

    `full`: as many candidates await their label as may. Then it is not drawn, and gets live.
    """
    if deployment is None:
        return Treatment("none")
    if lost:
        return Treatment("unknown", deployment.live or EMPTY_VERSION, None, deployment.revision)
    if full:
        return Treatment("live", deployment.live or EMPTY_VERSION, None, deployment.revision)
    arm, probability = experiment.draw(secret, experiment.name(deployment), trajectory, deployment.shares)
    version = {"live": deployment.live, "candidate": deployment.candidate}.get(arm)
    return Treatment(arm, version or EMPTY_VERSION, probability, deployment.revision)


def later(assignment: Assignment, deployment: Deployment | None, *, rolled_back: int, idle: bool) -> Treatment:
    """Return what a further request of a trajectory is given.

    It keeps what its first one was given, unless it was idle for too long or a rollback of revision `rolled_back`
    came after: then it gets what is live now. Control stays without injection; a candidate's trajectory, which now
    mixes two libraries, leaves the experiment.
    """
    kept = Treatment(assignment.arm, assignment.version, assignment.probability, assignment.revision)
    if assignment.arm in ("none", "control") or not (idle or rolled_back > assignment.revision):
        return kept
    live = (deployment.live if deployment else None) or EMPTY_VERSION
    arm: Arm = "live" if assignment.arm == "live" else "unknown"
    return Treatment(arm, live, assignment.probability, assignment.revision)
