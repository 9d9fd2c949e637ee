from __future__ import annotations

import pytest

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo.errors import Conflict, NotFound
from tfgrpo.store import Batch, Rules, Store
from tfgrpo.types import Bodies, Experience, Library, Pending, Version

ALL = 4
"""Trajectories of the store that is filled."""
NO_BODIES = Bodies(b"", b"", "", "", "")
GOOD = Experience("e1", "Check the sign.", ("g-1@0",))
BAD = Experience("e2", "Prefer the dear option.", ("g-2@0",))
BOTH = Experience("e3", "Be brief.", ("g-1@0", "g-2@0"))


@pytest.fixture
def filled(store: Store) -> Store:
    """Two trajectories of group g-1 by app a, two of g-2 by b and a; version 1 of run r rests on all but the last."""
    rows = [("a", "g-1"), ("a", "g-1"), ("b", "g-2"), ("a", "g-2")]
    told = [
        (exchange(n, app=app, group=group), assignment(n, app=app, group=group))
        for n, (app, group) in enumerate(rows, 1)
    ]
    store.traffic.add(Batch(tuple((one, NO_BODIES) for one, _ in told), tuple(one for _, one in told)))
    store.labels.add([label(1, app="a"), label(3, app="b", source="mallory")])
    store.labels.add([label(4, app="a", exchange=None, trajectory="t-4", source="eve")])
    learn(store, "r", "t-1", "t-2", "t-3")
    store.sets.add_version("math", Library((GOOD, BAD, BOTH), 4), status="helps", run="r", policy_model="m")
    return store


def learn(store: Store, run: str, *used: str) -> None:
    store.runs.start(run, set_name="math", arguments={}, started_at=1.0)
    store.runs.finish(run, status="finished", result={}, used=used)


def texts(version: Version | None) -> list[str]:
    assert version is not None
    return [one.text for one in version.library.experiences]


def taught(store: Store) -> set[str]:
    by_outline = {row[2] for row in store.learnable.outlines()}
    assert {one.trajectory for one in store.learnable.attempts()} == by_outline
    assert store.learnable.withdrawn() == store.learnable.withdrawn(set_name="math") == ALL - len(by_outline)
    return by_outline


@pytest.mark.parametrize(
    ("kind", "name", "left", "teaching"),
    [
        ("exchange", "ex-3", ["Check the sign."], {"t-1", "t-2", "t-4"}),
        ("exchange", "ex-1", ["Prefer the dear option."], {"t-2", "t-3", "t-4"}),
        ("app", "b", ["Check the sign."], {"t-1", "t-2", "t-4"}),
        ("app", "a", ["Prefer the dear option."], {"t-3"}),
        ("source", "mallory", ["Check the sign."], {"t-1", "t-2", "t-4"}),
        ("source", "g-1@0", ["Prefer the dear option."], {"t-3", "t-4"}),
        ("source", "g-1", ["Prefer the dear option."], {"t-3", "t-4"}),
    ],
)
def test_what_rests_on_withdrawn_evidence_goes_and_the_evidence_teaches_no_more(
    filled: Store, kind: str, name: str, left: list[str], teaching: set[str]
) -> None:
    (plan,) = filled.withdrawals.plan(kind, name)  # type: ignore[arg-type]
    (done,) = filled.withdrawals.withdraw(kind, name, reason="poison", actor="me", deploy=False)  # type: ignore[arg-type]
    assert done.plan == plan
    assert texts(done.version) == left == texts(filled.sets.version("math", 2))
    assert taught(filled) == teaching


@pytest.mark.parametrize(("kind", "name"), [("exchange", "ex-3"), ("app", "b"), ("source", "mallory")])
def test_what_is_pending_on_withdrawn_evidence_waits_no_more(filled: Store, kind: str, name: str) -> None:
    waiting = [Pending(text, sources, 1, {}, ("r",)) for text, sources in (("x", ("g-2@0",)), ("y", ("g-1@0",)))]
    filled.pending.replace("math", waiting)
    filled.withdrawals.withdraw(kind, name, reason="poison", actor="me", deploy=False)  # type: ignore[arg-type]
    assert [one.text for one in filled.pending.of("math")] == ["y"]


@pytest.mark.parametrize(("kind", "name"), [("exchange", "ex-4"), ("source", "eve")])
def test_a_trajectory_that_no_run_learned_from_takes_no_entry_along(filled: Store, kind: str, name: str) -> None:
    assert filled.withdrawals.plan(kind, name) == []  # type: ignore[arg-type]
    assert filled.withdrawals.withdraw(kind, name, reason="", actor="me", deploy=True) == []  # type: ignore[arg-type]
    assert taught(filled) == {"t-1", "t-2", "t-3"}


def test_where_no_run_says_what_it_learned_from_the_whole_group_counts(filled: Store) -> None:
    filled.sets.add_version("other", Library((BAD,), 3), status="by hand")
    assert [one.set for one in filled.withdrawals.plan("exchange", "ex-4")] == ["other"]


@pytest.mark.parametrize(
    ("kind", "name"), [("exchange", "ex-9"), ("app", "c"), ("source", "nobody"), ("exchange", ""), ("source", "g-9")]
)
def test_what_is_unknown_is_refused_by_name(filled: Store, kind: str, name: str) -> None:
    with pytest.raises(NotFound, match=repr(name)):
        filled.withdrawals.withdraw(kind, name, reason="", actor="me", deploy=False)  # type: ignore[arg-type]
    assert filled.withdrawals.all() == []


def test_it_is_deployed_where_asked_and_acts_on_every_trajectory(filled: Store) -> None:
    filled.sets.deploy("math", live=1, shares={"control": 0.1}, reason="", actor="me")
    (done,) = filled.withdrawals.withdraw("app", "b", reason="poison", actor="me", deploy=True)
    now = filled.sets.deployment("math")
    assert (now, now and now.live) == (done.deployment, 2)
    assert now is not None
    assert (now.shares, now.action, filled.sets.newest_rollback("math")) == ({"control": 0.1}, "withdraw", 2)
    assert "app b withdrawn: poison" in now.reason


def test_the_history_says_which_entries_went_and_why_and_its_chain_holds(filled: Store) -> None:
    filled.sets.deploy("math", live=1, reason="", actor="me")
    filled.withdrawals.withdraw("app", "b", reason="poison", actor="me", deploy=False)
    newest = filled.history.of("math")[0]
    assert (newest.action, newest.version, newest.entries, newest.actor) == ("withdraw", 2, ("e2", "e3"), "me")
    assert "poison" in newest.reason
    assert filled.history.fault("math") is None


def test_asked_again_with_deploy_it_deploys_the_version_that_it_made(filled: Store) -> None:
    filled.sets.deploy("math", live=1, reason="", actor="me")
    filled.withdrawals.withdraw("app", "b", reason="", actor="me", deploy=False)
    (done,) = filled.withdrawals.withdraw("app", "b", reason="", actor="me", deploy=True)
    assert done.deployment is not None
    assert (done.deployment.live, filled.sets.latest("math")) == (2, done.version)
    assert [one.plan.base for one in filled.withdrawals.withdraw("app", "b", reason="", actor="me", deploy=True)] == [
        None
    ]
    assert [one.action for one in filled.history.of("math")] == ["withdraw", "withdraw", "deploy"]


def test_a_candidate_that_rests_on_it_is_taken_out_and_live_stays(filled: Store) -> None:
    filled.sets.add_version("math", Library((GOOD,), 4), status="by hand")
    filled.sets.deploy("math", live=2, candidate=1, shares={"candidate": 0.2, "control": 0.1}, reason="", actor="me")
    (done,) = filled.withdrawals.withdraw("app", "b", reason="", actor="me", deploy=True)
    assert done.deployment is not None
    assert (done.deployment.live, done.deployment.candidate, done.deployment.shares) == (2, None, {"control": 0.1})


def test_what_rests_on_it_is_neither_deployed_nor_restored_again(filled: Store) -> None:
    filled.sets.add_version("math", Library((GOOD,), 4), status="by hand")
    for live in (2, 1, 2, 1):
        filled.sets.deploy("math", live=live, reason="", actor="me")
    filled.withdrawals.withdraw("app", "b", reason="", actor="me", deploy=True)
    with pytest.raises(Conflict, match=r"version 1 .* withdrawn \(entries e2, e3\)"):
        filled.sets.deploy("math", live=1, reason="", actor="me")
    assert filled.withdrawals.refuses(filled.sets.version("math", 1))
    back = filled.sets.rollback("math", reason="", actor="me")
    assert (back.live, back.effective) == (2, 3)


def test_deploying_another_version_by_hand_takes_it_from_every_trajectory_too(filled: Store) -> None:
    filled.sets.deploy("math", live=1, reason="", actor="me")
    filled.withdrawals.withdraw("app", "b", reason="", actor="me", deploy=False)
    made = filled.sets.deploy("math", live=2, reason="", actor="me")
    assert (made.action, filled.sets.newest_rollback("math")) == ("withdraw", 2)
    with pytest.raises(Conflict, match="no earlier deployment"):
        filled.sets.rollback("math", reason="", actor="me")


def test_less_than_what_is_live_needs_no_further_approval_and_anything_else_does(url: str, filled: Store) -> None:
    filled.sets.deploy("math", live=1, reason="", actor="me")
    strict = Store.open(url, rules=Rules(approval=True))
    (done,) = strict.withdrawals.withdraw("app", "b", reason="", actor="me", deploy=True)
    assert done.deployment is not None
    assert strict.reviews.standings("math").get(2) is None
    strict.sets.add_version("new", Library((GOOD, BAD), 4), status="unproven", run="r")
    strict.withdrawals.withdraw("source", "g-2", reason="", actor="me", deploy=True)
    assert strict.reviews.standings("new") == {1: "awaiting", 2: "awaiting"}
    strict.close()


def test_pending_lessons_that_rest_on_it_go_at_once(filled: Store) -> None:
    mine = Pending("Be polite.", ("g-1@0",), 1, {"g-1@0": ("a/x",)}, ("r",))
    theirs = Pending("Spend more.", ("g-1@0",), 1, {"g-1@0": ("a/x",), "g-2@1": ("b/y",)}, ("r",))
    filled.pending.replace("math", [mine, theirs])
    filled.withdrawals.plan("app", "b")
    assert filled.pending.of("math") == [mine, theirs]
    filled.withdrawals.withdraw("app", "b", reason="", actor="me", deploy=False)
    assert filled.pending.of("math") == [mine]
