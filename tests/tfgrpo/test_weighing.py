"""How several metrics come to one reward, whatever labels there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.weighing import Metric, alike, weighed

METRICS = {"a": Metric(), "b": Metric(0.5), "c": Metric(3.0, worst=30.0, best=2.0)}

_labelled = st.dictionaries(st.integers(0, 9), st.sets(st.sampled_from(sorted(METRICS)), min_size=1), min_size=1)


@given(_labelled)
def test_all_rollouts_of_a_group_are_weighed_by_the_same_metrics_which_they_have(labelled: dict[int, set[str]]) -> None:
    found = alike(labelled, METRICS)
    assert len(set(found.values())) == 1
    assert all(names and set(names) <= labelled[one] for one, names in found.items())


@given(_labelled)
def test_no_rollout_is_left_out_where_all_share_a_metric(labelled: dict[int, set[str]]) -> None:
    shared = set.intersection(*labelled.values())
    assert not shared or set(alike(labelled, METRICS)) == set(labelled)


@given(st.dictionaries(st.sampled_from(sorted(METRICS)), st.floats(0, 1), min_size=1))
def test_a_reward_lies_between_the_shares_it_is_made_of(shares: dict[str, float]) -> None:
    found = weighed(shares, METRICS)
    assert min(shares.values()) - 1e-9 <= found <= max(shares.values()) + 1e-9


@given(st.floats(allow_nan=False))
def test_a_share_lies_between_0_and_1_whatever_the_value(value: float) -> None:
    assert 0 <= METRICS["c"].share(value) <= 1
