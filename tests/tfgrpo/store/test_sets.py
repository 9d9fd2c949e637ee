from __future__ import annotations

import math
from typing import Any

import pytest

from tests.tfgrpo.store.examples import assignment
from tfgrpo import library
from tfgrpo.errors import Conflict, NotFound, UsageError
from tfgrpo.store import Batch, Store
from tfgrpo.types import Deployment, Library


@pytest.fixture
def math_set(store: Store) -> Store:
    for text in ("one", "two", "three"):
        store.sets.add_version("math", library.from_texts([text]), status="by hand")
    return store


def deploy(store: Store, **what: Any) -> Deployment:
    return store.sets.deploy("math", reason="r", actor="a", **({"live": 1} | what))


def test_versions_count_from_one_and_come_back_as_they_were_put(store: Store) -> None:
    made = store.sets.add_version("math", library.from_texts(["a"]), status="unproven", policy_model="m", run="r")
    assert made.version == 1
    assert store.sets.version("math", 1) == made


def test_version_0_of_any_set_is_the_empty_library(store: Store) -> None:
    assert store.sets.version("anything", 0).library == Library()


def test_an_unknown_version_is_named_in_the_error(math_set: Store) -> None:
    with pytest.raises(NotFound, match="set 'math' has no version 9"):
        math_set.sets.version("math", 9)


def test_a_parent_must_exist(store: Store) -> None:
    with pytest.raises(NotFound):
        store.sets.add_version("math", Library(), status="by hand", parent=3)


def test_the_lineage_of_a_version_goes_back_to_the_first(math_set: Store) -> None:
    math_set.sets.add_version("math", Library(), status="unproven", parent=2)
    math_set.sets.add_version("math", Library(), status="unproven", parent=4)
    assert [version.version for version in math_set.sets.lineage("math", 5)] == [5, 4, 2]
    assert [version.version for version in math_set.sets.lineage("math", 0)] == [0]


def test_experience_ids_go_on_over_all_versions_of_a_set(math_set: Store) -> None:
    math_set.sets.add_version("math", Library((), next_id=7), status="by hand")
    assert math_set.sets.next_id("math") == 7


def test_a_set_that_only_traffic_names_can_be_deployed_empty(store: Store) -> None:
    store.traffic.add(Batch(assignments=(assignment(set="seen"),)))
    assert store.sets.deploy("seen", live=None, reason="", actor="a").revision == 1
    assert store.sets.names() == ["seen"]


def test_deploying_an_unknown_set_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="there is no set 'nope'"):
        store.sets.deploy("nope", live=None, reason="", actor="a")


@pytest.mark.parametrize("what", [{"live": 9}, {"candidate": 9}, {"live": -1}, {"live": 2**80}])
def test_deploying_an_unknown_version_is_not_found(math_set: Store, what: dict[str, int]) -> None:
    with pytest.raises(NotFound):
        deploy(math_set, **what)
    assert math_set.sets.deployment("math") is None


@pytest.mark.parametrize(
    ("what", "field"),
    [
        ({"shares": {"control": 1.1}}, "shares.control"),
        ({"shares": {"control": -0.1}}, "shares.control"),
        ({"shares": {"control": math.nan}}, "shares.control"),
        ({"shares": {"live": 0.5}}, "shares"),
        ({"candidate": 2, "shares": {"candidate": 0.6, "control": 0.6}}, "shares"),
        ({"shares": {"candidate": 0.1}}, "candidate"),
        ({"candidate": 1}, "candidate"),
    ],
)
def test_what_does_not_fit_is_refused_naming_the_field(math_set: Store, what: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError) as caught:
        deploy(math_set, **what)
    assert caught.value.field == field


def test_a_deployment_unsets_what_it_does_not_name(math_set: Store) -> None:
    deploy(math_set, candidate=2, shares={"candidate": 0.2})
    assert deploy(math_set, live=3).candidate is None


def test_a_deployment_on_another_revision_than_expected_is_a_conflict(math_set: Store) -> None:
    deploy(math_set, if_revision=0)
    with pytest.raises(Conflict, match="is at revision 1, not 0"):
        deploy(math_set, if_revision=0)


def test_rolling_back_restores_the_deployment_before(math_set: Store) -> None:
    first = deploy(math_set, live=1, shares={"control": 0.1})
    deploy(math_set, live=2)
    back = math_set.sets.rollback("math", reason="worse", actor="me")
    assert (back.revision, back.live, dict(back.shares), back.effective) == (3, 1, {"control": 0.1}, first.revision)


def test_rolling_back_again_goes_further_back_and_not_forth(math_set: Store) -> None:
    for live in (1, 2, 3):
        deploy(math_set, live=live)
    lives = [math_set.sets.rollback("math", reason="", actor="a").live for _ in range(2)]
    assert lives == [2, 1]


def test_a_deployment_made_after_a_rollback_rolls_back_to_what_was_restored(math_set: Store) -> None:
    deploy(math_set, live=1)
    deploy(math_set, live=2)
    math_set.sets.rollback("math", reason="", actor="a")
    deploy(math_set, live=3)
    assert math_set.sets.rollback("math", reason="", actor="a").live == 1


def test_with_nothing_to_go_back_to_a_rollback_is_a_conflict_that_says_what_to_do(math_set: Store) -> None:
    deploy(math_set)
    with pytest.raises(Conflict, match="deploy live: null"):
        math_set.sets.rollback("math", reason="", actor="a")


def test_the_stamp_changes_with_every_version_status_and_deployment(store: Store) -> None:
    stamps = [store.sets.stamp()]
    store.sets.add_version("math", Library(), status="unproven")
    stamps.append(store.sets.stamp())
    store.sets.set_status("math", 1, "helps")
    stamps.append(store.sets.stamp())
    deploy(store)
    stamps.append(store.sets.stamp())
    assert len(set(stamps)) == 4


def test_the_newest_rollback_is_known_by_its_revision(math_set: Store) -> None:
    deploy(math_set, live=1)
    deploy(math_set, live=2)
    math_set.sets.rollback("math", reason="", actor="a")
    deploy(math_set, live=3)
    assert math_set.sets.newest_rollback("math") == 3


def test_a_draft_can_be_pinned_and_is_in_no_list(store: Store) -> None:
    kept = store.sets.add_version("math", library.from_texts(["a"]), status="by hand")
    draft = store.sets.add_draft("math", library.from_texts(["b"]))
    assert store.sets.version("math", draft).library.experiences[0].text == "b"
    assert [one.version for one in store.sets.versions("math")] == [kept.version]
    assert store.sets.add_version("math", library.from_texts(["c"]), status="by hand").version == kept.version + 1


def test_a_draft_cannot_be_deployed(store: Store) -> None:
    draft = store.sets.add_draft("math", library.from_texts(["b"]))
    with pytest.raises(UsageError, match="is a draft under test"):
        store.sets.deploy("math", live=draft, reason="", actor="")


def test_a_draft_is_no_parent(store: Store) -> None:
    draft = store.sets.add_draft("math", library.from_texts(["b"]))
    with pytest.raises(UsageError, match="is a draft under test"):
        store.sets.add_version("math", library.from_texts(["c"]), status="by hand", parent=draft)


def test_the_number_of_a_dropped_draft_is_not_given_again(store: Store) -> None:
    first = store.sets.add_draft("math", library.from_texts(["b"]))
    store.sets.drop_drafts("math", [first])
    assert store.sets.add_draft("math", library.from_texts(["c"])) == first + 1
    with pytest.raises(NotFound):
        store.sets.version("math", first)


def test_dropping_drafts_leaves_versions_alone(store: Store) -> None:
    kept = store.sets.add_version("math", library.from_texts(["a"]), status="by hand")
    store.sets.drop_drafts("math", [kept.version])
    assert store.sets.version("math", kept.version) == kept
