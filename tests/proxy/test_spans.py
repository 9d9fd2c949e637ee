from __future__ import annotations

from dataclasses import astuple

import pytest

from proxy.dashboard.spans import SPANS, rewards, steps
from tfgrpo.store import Fact, Rewarded

DAY = 86_400


@pytest.mark.parametrize("name", SPANS)
def test_a_span_ends_with_the_step_that_runs(name: str) -> None:
    span, now = SPANS[name], 20_000 * DAY + 5000.0
    begins = span.begins(now)
    assert len(begins) == span.steps
    assert begins[-1] <= now < begins[-1] + span.width * 3600
    assert begins[0] == span.since(now) * 3600


def test_steps_of_a_day_begin_at_midnight() -> None:
    assert {begin % DAY for begin in SPANS["month"].begins(20_000 * DAY + 5000.0)} == {0}


def test_steps_and_the_whole_are_what_their_facts_add_up_to() -> None:
    found = [Fact(0, "complete", 8), Fact(0, "failed", 1), Fact(1, "broken", 1), Fact(1, "aborted", 2)]
    found += [Fact(1, "begun", 4), Fact(1, "labelled", 1), Fact(0, "prompt tokens", 5)]
    each, whole = steps(found, 2)
    assert [(one.requests, one.errors, one.left) for one in [*each, whole]] == [(9, 1, 0), (3, 1, 2), (12, 2, 2)]
    assert (each[0].coverage, each[1].coverage, whole.tokens) == (None, 0.25, 5)
    assert each[0].failing == pytest.approx(1 / 9)


def test_a_quantile_is_that_of_the_exchanges_however_they_are_spread() -> None:
    _, whole = steps([Fact(0, "added 40", 94), Fact(1, "added 60", 6)], 2)
    assert whole.median == pytest.approx(0.00112, rel=0.01)
    assert whole.most == pytest.approx(0.0357, rel=0.01)
    assert steps([], 1)[1].median is None


def test_what_began_by_a_clock_that_is_ahead_is_in_the_step_that_runs() -> None:
    each, _ = steps([Fact(7, "complete", 1)], 2)
    assert [one.requests for one in each] == [0, 1]


def test_a_mean_of_few_rewards_has_a_wide_interval_and_what_is_unknown_none() -> None:
    found = [Rewarded(0, "live", 4, 4.0), Rewarded(0, "unknown", 9, 9.0), Rewarded(1, "control", 0, 0.0)]
    arms, each = rewards(found, 2)
    assert arms == ["live"]
    assert astuple(each[0]["live"]) == pytest.approx((4, 1.0, 0.51, 1.0), abs=0.01)
    assert each[1] == {}
