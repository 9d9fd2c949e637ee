from __future__ import annotations

import random
from collections.abc import Callable

from tfgrpo import experiment
from tfgrpo.experiment import Account, Decision, Levels, Seen
from tfgrpo.types import Arm

SHARES: dict[Arm, float] = {"candidate": 0.2, "live": 0.7, "control": 0.1}


def account(
    good: dict[Arm, float],
    labels: Callable[[Arm, bool], float] = lambda _arm, _good: 0.7,
    *,
    n: int = 8000,
    early: bool = False,
    tokens: Callable[[Arm], int] = lambda _arm: 100,
) -> Account:
    """The books after `n` trajectories. `good`: the chance of reward 1; `labels`: that of a label."""
    rng = random.Random(11)  # noqa: S311 - a simulation
    made = Account(SHARES)
    for _ in range(n):
        arm = rng.choices(list(SHARES), list(SHARES.values()))[0]
        reward = rng.random() < good[arm]
        label = float(reward) if rng.random() < labels(arm, reward) else None
        if early and label is not None:
            made.label(arm, label)
        elif not early:
            made.settle(Seen(arm, label, tokens=tokens(arm) + rng.randrange(50)))
    return made


def equal(chance: float) -> dict[Arm, float]:
    return {"candidate": chance, "live": chance, "control": chance}


def decided(books: Account, levels: Levels | None = None) -> Decision:
    return experiment.decide(books, levels or Levels())


def test_equals_are_left_undecided() -> None:
    assert decided(account(equal(0.7))).action == "none"


def test_a_better_candidate_is_promoted() -> None:
    assert decided(account(equal(0.6) | {"candidate": 0.75})).action == "promote"


def test_a_worse_candidate_is_rolled_back() -> None:
    decision = decided(account(equal(0.7) | {"candidate": 0.5}))
    assert (decision.action, "settled" in decision.reason) == ("roll back", True)


def test_first_labels_alone_roll_back_and_never_promote() -> None:
    worse, better = equal(0.7) | {"candidate": 0.4}, equal(0.5) | {"candidate": 0.9}
    assert "first labels" in decided(account(worse, n=3000, early=True)).reason
    assert decided(account(better, n=3000, early=True)).action == "none"


def test_unhappy_users_that_keep_silent_promote_nothing() -> None:
    def labels(arm: Arm, good: bool) -> float:
        return 0.2 if arm == "candidate" and not good else 0.7

    books = account(equal(0.6), labels)
    pair = books.against_live()
    assert pair is not None
    # By the labels that are there it looks better, and clearly so.
    assert pair.reward.sequence.above(0.001)
    decision = decided(books)
    assert (decision.action, decision.reason[:9]) == ("none", "undecided")
    assert "label rates" in str(decision.blocked)


def test_a_better_candidate_that_changes_who_labels_is_not_promoted() -> None:
    def labels(arm: Arm, good: bool) -> float:
        return (0.95 if good else 0.7) if arm == "candidate" else 0.7

    decision = decided(account(equal(0.5) | {"candidate": 0.8}, labels))
    assert decision.action == "none"
    assert decision.blocked is not None


def test_a_later_candidate_of_a_set_needs_more() -> None:
    levels = [Levels(candidate=number).promotion for number in range(1, 2000)]
    assert levels == sorted(levels, reverse=True)
    assert 0.02497 < sum(levels) < 0.025


def test_failures_beyond_the_bound_roll_back() -> None:
    books = account(equal(0.7), n=100)
    for _ in range(60):
        for arm in ("candidate", "live", "live", "live"):
            books.end(arm, failed=arm == "candidate")
    assert "fail more often" in decided(books).reason


def test_failures_that_live_has_too_roll_nothing_back() -> None:
    books = account(equal(0.7), n=100)
    for _ in range(60):
        for arm in ("candidate", "live", "live", "live"):
            books.end(arm, failed=True)
    assert decided(books).action == "none"


def test_longer_answers_only_alert() -> None:
    decision = decided(account(equal(0.7), tokens=lambda arm: 200 if arm == "candidate" else 100))
    assert decision.action == "none"
    assert any("longer" in alert for alert in decision.alerts)


def test_answers_that_end_for_other_reasons_only_alert() -> None:
    books = Account(SHARES)
    for number in range(600):
        arm: Arm = "candidate" if number % 5 == 0 else "live"
        books.settle(Seen(arm, 1.0, finish="length" if arm == "candidate" and number % 2 else "stop"))
    decision = decided(books)
    assert decision.action == "none"
    assert any("finish_reason" in alert for alert in decision.alerts)


def test_without_live_or_candidate_nothing_is_decided() -> None:
    assert decided(Account({"live": 0.5, "control": 0.5})).action == "none"


def test_the_effect_does_not_depend_on_how_traffic_drifts() -> None:
    # Pooled means would credit the candidate with the good hours in which its share was drawn more often by chance.
    rng = random.Random(3)  # noqa: S311 - a simulation
    books = Account(SHARES)
    for number in range(6000):
        arm = rng.choices(list(SHARES), list(SHARES.values()))[0]
        books.settle(Seen(arm, 1.0 if number >= 3000 else 0.0))
    pair = books.against_live()
    assert pair is not None
    low, high = pair.reward.sequence.interval(0.05)
    assert low < 0 < high
    assert high - low < 0.1


def test_the_worst_case_holds_what_any_missing_labels_could_say() -> None:
    books = account(equal(0.6) | {"candidate": 0.75})
    pair = books.against_live()
    assert pair is not None
    means = [effect.sequence.mean for effect in (pair.worst, pair.missing_as_0, pair.missing_as_1, pair.best)]
    assert means[0] is not None
    assert means[0] < 0 < (means[3] or 0)
    assert all(means[0] < (mean or 0) < (means[3] or 0) for mean in means[1:3])


def test_only_fresh_groups_count_for_the_effect_on_fresh_groups() -> None:
    books = Account(SHARES)
    for fresh in (True, False, False):
        books.settle(Seen("live", 1.0, fresh=fresh))
    pair = books.against_live()
    assert pair is not None
    assert (pair.fresh.sequence.count, pair.reward.sequence.count) == (1, 3)
