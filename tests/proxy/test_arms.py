from __future__ import annotations

import pytest
from msgspec import structs

from proxy import arms
from proxy.arms import Treatment
from tests.proxy.examples import assignment
from tfgrpo.types import Arm, Deployment

SECRET = b"s" * 32
DEPLOYMENT = Deployment("math", 5, 3, 4, {"candidate": 0.5, "control": 0.5}, "deploy", "", "", 0.0, effective=5)


def given(arm: Arm, version: int, revision: int = 4) -> Treatment:
    kept = structs.replace(assignment("t-1"), arm=arm, version=version, revision=revision)
    return arms.later(kept, DEPLOYMENT, rolled_back=0, idle=False)


def after_rollback(arm: Arm, version: int) -> Treatment:
    kept = structs.replace(assignment("t-1"), arm=arm, version=version, revision=4)
    return arms.later(kept, DEPLOYMENT, rolled_back=5, idle=False)


def test_what_cannot_be_injected_is_outside_every_experiment() -> None:
    assert arms.asked(7, injectable=False) == Treatment("none")


def test_a_pinned_version_is_given_as_asked() -> None:
    assert arms.asked(7, injectable=True) == Treatment("pinned", 7)


def test_without_a_deployment_nothing_is_injected() -> None:
    assert arms.first(SECRET, "t-1", None, lost=False) == Treatment("none")


def test_an_arm_is_drawn_with_its_probability_and_revision() -> None:
    treatment = arms.first(SECRET, "t-1", DEPLOYMENT, lost=False)
    expected: dict[Arm, int] = {"candidate": 4, "control": 0}
    assert treatment == Treatment(treatment.arm, expected[treatment.arm], 0.5, 5)


def test_a_lost_trajectory_gets_the_live_library_and_no_arm() -> None:
    assert arms.first(SECRET, "t-1", DEPLOYMENT, lost=True) == Treatment("unknown", 3, None, 5)


@pytest.mark.parametrize("arm", ["live", "candidate", "control", "pinned", "unknown", "none"])
def test_a_trajectory_keeps_what_it_was_given(arm: Arm) -> None:
    treatment = given(arm, 2)
    assert (treatment.arm, treatment.version) == (arm, 2)


@pytest.mark.parametrize(
    ("arm", "now", "version"),
    [
        ("live", "live", 3),
        ("candidate", "unknown", 3),
        ("control", "control", 0),
        ("pinned", "unknown", 3),
        ("none", "none", 0),
    ],
)
def test_a_rollback_reaches_trajectories_that_began_before_it(arm: Arm, now: Arm, version: int) -> None:
    treatment = after_rollback(arm, 0 if arm in ("control", "none") else 2)
    assert (treatment.arm, treatment.version) == (now, version)


def test_a_rollback_does_not_touch_trajectories_that_began_after_it() -> None:
    kept = structs.replace(assignment("t-1"), arm="live", version=2, revision=5)
    assert arms.later(kept, DEPLOYMENT, rolled_back=5, idle=False).version == 2


def test_an_idle_trajectory_gets_what_is_live_now() -> None:
    kept = structs.replace(assignment("t-1"), arm="live", version=2, revision=5)
    assert arms.later(kept, DEPLOYMENT, rolled_back=0, idle=True).version == 3


def test_while_enough_candidates_await_their_label_a_trajectory_gets_live_undrawn() -> None:
    assert arms.first(SECRET, "t-1", DEPLOYMENT, lost=False, full=True) == Treatment("live", 3, None, 5)
