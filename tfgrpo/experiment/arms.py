"""Which arm of a live experiment a new trajectory falls into.

Pure. The draw is a keyed hash (BLAKE2b as a MAC, RFC 7693), so that every worker draws the same arm for the same
trajectory without asking anyone, and nobody without the secret can choose an id that lands in a given arm. It does not
know what an arm means for a request, nor how arms are compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tfgrpo.types import Arm, Deployment

_BITS = 53
"""As many bits as a float holds exactly: every point of [0, 1) is equally likely."""

_STEP = 2.0**-_BITS


def name(deployment: Deployment) -> str:
    """Return the name of the experiment that a deployment is: a rollback resumes the one it restores."""
    return f"{deployment.set}:{deployment.effective}"


def draw(secret: bytes, experiment: str, trajectory: str, shares: Mapping[str, float]) -> tuple[Arm, float]:
    """Return the arm of `trajectory` in `experiment`, and the probability with which that arm is drawn.

    `shares` are the parts of `candidate` and `control`; what is left is `live`. Within an experiment the arms of
    different trajectories are independent, and so are the arms of one trajectory in different experiments.
    """
    candidate = shares.get("candidate", 0.0)
    control = shares.get("control", 0.0)
    if not candidate and not control:
        return "live", 1.0
    point = _uniform(secret, experiment, trajectory)
    if point < candidate:
        return "candidate", candidate
    if point < candidate + control:
        return "control", control
    return "live", max(0.0, 1.0 - candidate - control)


def sampled(secret: bytes, app: str, trajectory: str, share: float) -> bool:
    """Say whether a trajectory is one of the part `share` that is drawn to be kept whole, whatever its arm.

    A trajectory that is kept at some share is kept at every larger one.
    """
    return _uniform(secret, f"record:{app}", trajectory) < share


def _uniform(secret: bytes, experiment: str, trajectory: str) -> float:
    text = f"{experiment}\0{trajectory}".encode("utf-8", "surrogatepass")
    point = hashlib.blake2b(text, digest_size=8, key=secret, person=b"tfgrpo arm").digest()
    return (int.from_bytes(point) >> (64 - _BITS)) * _STEP
