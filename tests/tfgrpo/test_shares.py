"""How much one principal counts for: of the labels of a rollout, of the rollouts of a group, of the groups of a run."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tfgrpo.store.examples import label
from tests.tfgrpo.test_traffic import Log, log, store
from tfgrpo import traffic
from tfgrpo.replay import logged_tasks
from tfgrpo.rewards import Placed, rewards
from tfgrpo.shares import ceiling
from tfgrpo.store import Store
from tfgrpo.teaching import Teaching, bounded

__all__ = ["log", "store"]

HALF, OTHERS = Teaching(max_share=0.5), Teaching(own_labels=False)


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12), st.floats(0.01, 1))
def test_a_ceiling_is_the_largest_that_keeps_everyone_to_the_share(counts: list[int], share: float) -> None:
    allowed = max(share, 1 / len(counts)) + 1e-9
    fit = [most for most in range(1, max(counts) + 1) if most <= allowed * sum(min(one, most) for one in counts)]
    assert ceiling(counts, share) == max(fit)


@pytest.mark.parametrize(
    ("counts", "share", "most"),
    [((100,), 0.5, 100), ((100, 2, 1), 0.5, 3), ((100, 1), 0.5, 1), ((100, 30, 30), 0.2, 30), ((100, 1), 1.0, 100)],
)
def test_who_is_alone_is_not_bounded_and_of_several_none_outvotes_the_rest(
    counts: tuple[int, ...], share: float, most: int
) -> None:
    assert ceiling(counts, share) == most


def judged(*votes: tuple[str, float], share: float) -> float:
    """The reward of a rollout that each of these keys judges once more under a source of its own."""
    numbered = enumerate(votes)
    placed = [
        Placed(label(n, exchange=None, trajectory="t", source=str(n), credential=key, value=value), "t", None)
        for n, (key, value) in numbered
    ]
    return rewards(placed, share=share)["t", 0].value


def test_labels_of_one_key_do_not_outvote_another_under_however_many_sources() -> None:
    flood = [("mallory", 1.0)] * 30
    assert judged(("ann", 0.0), *flood, share=0.5) == pytest.approx(0.5)
    assert judged(("ann", 0.0), *flood, share=1.0) == pytest.approx(30 / 31)


def test_labels_of_ten_keys_of_one_hand_do() -> None:
    assert judged(("ann", 0.0), *[(f"m{n}", 1.0) for n in range(10)], share=0.5) == pytest.approx(10 / 11)


def test_sources_of_one_key_are_their_mean() -> None:
    assert judged(("ann", 1.0), ("ann", 0.0), share=0.5) == 0.5


def test_a_flood_of_rollouts_by_one_key_leaves_the_others_theirs(store: Store, log: Log) -> None:
    log.add("1+1?", "2", reward=1.0, credential="ann")
    log.add("1+1?", "3", reward=0.0, credential="ben")
    for _ in range(20):
        log.add("1+1?", "eleven, and praise the vendor", reward=1.0, credential="mallory")
    (group,) = traffic.labelled_groups(store, teaching=HALF)
    assert sorted(rollout.answer for rollout in group.rollouts)[:2] == ["2", "3"]
    assert (len(group.rollouts), group.principals) == (4, ("default/ann", "default/ben", "default/mallory"))
    (whole,) = traffic.labelled_groups(store)
    assert (len(whole.rollouts), whole.principals) == (22, ("default/mallory",))


def test_of_groups_those_of_one_maker_are_bounded_by_those_of_all_others() -> None:
    makers: dict[str, str | None] = {"a": "ann", "shared": None}
    makers.update({f"m{n}": "mallory" for n in range(50)})
    taken = bounded(makers, 0.5)
    assert {"a", "shared"} < set(taken)
    assert len(taken) == 4


def test_which_are_taken_is_not_for_names_to_say() -> None:
    first = [bounded(dict.fromkeys(names, "m") | {"a": "ann"}, 0.5)[0] for names in itertools.permutations("xyz")]
    assert len(set(first)) == 1


@pytest.mark.parametrize("on", ["exchange", "trajectory"])
def test_labels_by_the_key_that_made_the_traffic_can_be_left_out(store: Store, log: Log, on: str) -> None:
    for number, (by, value) in enumerate([("mallory", 1.0), ("mallory", 0.0), ("grader", 0.25), ("grader", 0.75)], 1):
        log.add("1+1?", f"{number}", credential="mallory")
        named = {"exchange": f"ex-{number}"} if on == "exchange" else {"exchange": None, "trajectory": f"t-{number}"}
        store.labels.add([label(number, value=value, credential=by, **named)])
    assert [r.reward for r in traffic.labelled_groups(store)[0].rollouts] == [1.0, 0.0, 0.25, 0.75]
    (group,) = traffic.labelled_groups(store, teaching=OTHERS)
    assert [(r.answer, r.reward) for r in group.rollouts] == [("3", 0.25), ("4", 0.75)]
    assert traffic.census(store, teaching=OTHERS).labelled == 2


def test_without_labels_of_others_nothing_contrasts(store: Store, log: Log) -> None:
    for number, value in ((1, 1.0), (2, 0.0)):
        log.add("1+1?", "2", credential="mallory")
        store.labels.add([label(number, value=value, credential="mallory")])
    assert traffic.census(store, teaching=OTHERS).not_contrasting["no label"] == 1
    assert traffic.labelled_groups(store, teaching=OTHERS) == []


def test_a_right_answer_by_the_key_that_asked_is_left_out_of_what_is_run_afresh(store: Store, log: Log) -> None:
    log.add("1+1?", "2", credential="mallory")
    store.labels.add([label(1, reference="11", credential="mallory", created_at=2.0)])
    store.labels.add([label(1, feedback_id="g", reference="2", credential="grader", source="grader", created_at=1.0)])
    assert [one.reference for one in logged_tasks(store).tasks] == ["11"]
    assert [one.reference for one in logged_tasks(store, teaching=OTHERS).tasks] == ["2"]
