from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tfgrpo import experiment
from tfgrpo.types import Arm, Deployment

SECRET = b"s" * 32
SHARES = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(
    lambda pair: {"candidate": pair[0] * (1 - pair[1]), "control": pair[1]}
)


@given(SHARES, st.text(), st.text())
def test_the_same_trajectory_draws_the_same_arm_again(shares: dict[str, float], name: str, trajectory: str) -> None:
    first = experiment.draw(SECRET, name, trajectory, shares)
    assert experiment.draw(SECRET, name, trajectory, dict(shares)) == first


@given(SHARES)
def test_the_probabilities_of_the_arms_add_up_to_one(shares: dict[str, float]) -> None:
    seen = dict(experiment.draw(SECRET, "math:1", f"t-{number}", shares) for number in range(200))
    expected = {**shares, "live": 1 - shares["candidate"] - shares["control"]}
    assert all(math.isclose(seen[arm], expected[arm], abs_tol=1e-12) for arm in seen)


def test_arms_come_in_their_proportions() -> None:
    shares = {"candidate": 0.1, "control": 0.3}
    count = 20_000
    arms = Counter(experiment.draw(SECRET, "math:1", f"t-{n}", shares)[0] for n in range(count))
    expected: dict[Arm, float] = {"candidate": 0.1, "control": 0.3, "live": 0.6}
    for arm, share in expected.items():
        # Five standard deviations: the draw is fixed, so this either holds or the hash is not uniform.
        assert abs(arms[arm] - share * count) < 5 * math.sqrt(count * share * (1 - share)), arm


def test_an_arm_in_one_experiment_says_nothing_of_the_arm_in_another() -> None:
    shares = {"control": 0.5}
    pairs = Counter(
        (
            experiment.draw(SECRET, "math:1", f"t-{n}", shares)[0],
            experiment.draw(SECRET, "math:2", f"t-{n}", shares)[0],
        )
        for n in range(4000)
    )
    assert all(abs(count - 1000) < 150 for count in pairs.values())
    assert len(pairs) == 4


def test_another_secret_draws_other_arms() -> None:
    shares = {"control": 0.5}
    arms = [
        [experiment.draw(secret, "math:1", f"t-{n}", shares)[0] for n in range(100)] for secret in (SECRET, b"x" * 32)
    ]
    assert arms[0] != arms[1]


def test_without_shares_everything_is_live() -> None:
    assert experiment.draw(SECRET, "math:1", "t-1", {}) == ("live", 1.0)


@given(st.text())
def test_a_full_control_share_leaves_nothing_live(trajectory: str) -> None:
    assert experiment.draw(SECRET, "math:1", trajectory, {"control": 1.0}) == ("control", 1.0)


def test_a_rollback_resumes_the_experiment_that_it_restores() -> None:
    first = Deployment("math", 1, 1, None, {}, "deploy", "", "", 0.0, effective=1)
    restored = Deployment("math", 3, 1, None, {}, "rollback", "", "", 0.0, effective=1)
    assert experiment.name(first) == experiment.name(restored)
