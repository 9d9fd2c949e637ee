from __future__ import annotations

from collections.abc import Iterator

import pytest

from tfgrpo import library
from tfgrpo.errors import Conflict, NotFound, UsageError
from tfgrpo.store import Rules, Store
from tfgrpo.types import Deployment, Library


@pytest.fixture
def careful(url: str) -> Iterator[Store]:
    """A store that wants approval, with a version by hand and a learned one."""
    opened = Store.open(url, migrate=True, rules=Rules(approval=True))
    opened.sets.add_version("math", library.from_texts(["Check the sign."]), status="by hand")
    opened.sets.add_version("math", library.from_texts(["Check the unit."]), status="helps", run="r", parent=1)
    yield opened
    opened.close()


def deploy(store: Store, live: int | None, candidate: int | None = None) -> Deployment:
    return store.sets.deploy("math", live=live, candidate=candidate, reason="", actor="a")


@pytest.mark.parametrize("arms", [(2, None), (1, 2)])
def test_a_learned_version_awaits_approval_as_live_and_as_candidate(careful: Store, arms: tuple[int, int]) -> None:
    with pytest.raises(Conflict, match=r"awaits approval.*sets approve math@2"):
        deploy(careful, *arms)
    assert careful.sets.deployment("math") is None


def test_a_version_by_hand_needs_no_approval(careful: Store) -> None:
    assert deploy(careful, 1).live == 1


def test_an_approved_version_is_deployed_and_the_history_says_who_and_why(careful: Store) -> None:
    careful.reviews.approve("math", 2, reason="read it", actor="ann")
    assert deploy(careful, 2).live == 2
    said = careful.history.of("math")[-1]
    assert (said.action, said.version, said.reason, said.actor) == ("approve", 2, "read it", "ann")


def test_a_rejected_version_is_refused_whatever_is_configured_until_it_is_approved(careful: Store, url: str) -> None:
    careful.reviews.reject("math", 2, reason="too bold", actor="ann")
    careless = Store.open(url)
    with pytest.raises(Conflict, match="was rejected"):
        deploy(careless, 2)
    careless.reviews.approve("math", 2, reason="", actor="bob")
    assert deploy(careless, 2).live == 2
    careless.close()


def test_a_rejection_needs_a_reason(careful: Store) -> None:
    with pytest.raises(UsageError, match="say why"):
        careful.reviews.reject("math", 2, reason=" ", actor="ann")


def test_what_is_deployed_is_not_rejected_before_it_is_rolled_back(careful: Store) -> None:
    deploy(careful, 1)
    with pytest.raises(Conflict, match="roll it back first"):
        careful.reviews.reject("math", 1, reason="no", actor="ann")


@pytest.mark.parametrize(("version", "error"), [(9, NotFound), (0, UsageError)])
def test_only_a_version_that_is_there_is_reviewed(careful: Store, version: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        careful.reviews.approve("math", version, reason="", actor="ann")


def test_a_version_with_nothing_but_approved_entries_needs_no_further_word(careful: Store) -> None:
    careful.sets.add_version("math", Library(), status="unproven", run="r2", parent=2)
    careful.sets.add_version("math", library.from_texts(["Check the sign."]), status="unproven", run="r3")
    assert careful.reviews.standings("math") == {2: "awaiting", 3: "approved", 4: "approved"}


@pytest.mark.usefixtures("careful")
def test_without_the_setting_a_learned_version_is_deployed_unread(url: str) -> None:
    careless = Store.open(url)
    assert deploy(careless, 2).live == 2
    careless.close()


def test_a_rollback_asks_nobody(careful: Store, url: str) -> None:
    careless = Store.open(url)
    deploy(careless, 2)
    careless.close()
    deploy(careful, 1)
    assert careful.sets.rollback("math", reason="", actor="a").live == 2


def test_a_lesson_with_a_secret_of_the_configuration_is_not_stored(url: str) -> None:
    store = Store.open(url, migrate=True, rules=Rules(secrets=("open-sesame",)))
    with pytest.raises(UsageError, match="holds a secret of this configuration") as caught:
        store.sets.add_version("math", library.from_texts(["Say open-sesame first."]), status="by hand")
    assert "open-sesame" not in str(caught.value)
    store.close()


def test_a_version_with_what_became_a_secret_since_is_not_deployed(url: str) -> None:
    before = Store.open(url, migrate=True)
    before.sets.add_version("math", library.from_texts(["Say open-sesame first."]), status="by hand")
    before.close()
    store = Store.open(url, rules=Rules(secrets=("open-sesame",)))
    with pytest.raises(UsageError, match="holds a secret of this configuration"):
        deploy(store, 1)
    store.close()
