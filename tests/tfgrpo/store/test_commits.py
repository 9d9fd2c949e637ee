"""A version that was changed in the database is found, and neither approved nor deployed."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from tests.tfgrpo.store.test_history import tampered
from tfgrpo import library
from tfgrpo.errors import Conflict
from tfgrpo.store import Rules, Store
from tfgrpo.store.migrations import STEPS, take


@pytest.fixture
def learned(store: Store) -> Store:
    for word in ("one", "two"):
        store.sets.add_version("math", library.from_texts([word]), status="unproven", run="r", policy_model="m")
    store.sets.deploy("math", live=1, reason="", actor="a")
    return store


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE versions SET run = NULL WHERE version = 2",
        "UPDATE versions SET parent = 1 WHERE version = 2",
        "UPDATE versions SET policy_model = 'other' WHERE version = 2",
        "UPDATE versions SET library = '{}' WHERE version = 2",
        "DELETE FROM commits WHERE version = 2",
        "UPDATE commits SET digest = 'x' WHERE version = 2",
    ],
)
def test_a_changed_version_is_named_and_neither_approved_nor_deployed(learned: Store, url: str, statement: str) -> None:
    tampered(url, statement)
    fault = learned.history.fault("math")
    assert fault is not None
    assert (fault.what, fault.number) == ("version", 2)
    with pytest.raises(Conflict, match="changed in the database"):
        learned.sets.deploy("math", live=2, reason="", actor="a")
    with pytest.raises(Conflict, match="changed in the database"):
        learned.reviews.approve("math", 2, reason="", actor="a")
    learned.sets.deploy("math", live=1, reason="", actor="a")


@pytest.mark.usefixtures("learned")
def test_a_learned_version_does_not_escape_approval_by_losing_its_run(url: str) -> None:
    tampered(url, "UPDATE versions SET run = NULL WHERE version = 2")
    strict = Store.open(url, rules=Rules(approval=True))
    with pytest.raises(Conflict):
        strict.sets.deploy("math", live=2, reason="", actor="a")
    strict.close()


@pytest.mark.parametrize(
    ("statement", "what", "number"),
    [
        ("DELETE FROM history", "row", 1),
        ("DELETE FROM meta WHERE key = 'history math'", "row", 2),
        ("DELETE FROM versions WHERE version = 2", "version", 2),
        ("UPDATE commits SET origin = 'migrated' WHERE version = 1", "version", 1),
        ("DELETE FROM commits WHERE version = 1", "version", 2),
    ],
)
def test_what_was_removed_is_found(learned: Store, url: str, statement: str, what: str, number: int) -> None:
    tampered(url, statement)
    fault = learned.history.fault("math")
    assert fault is not None
    assert (fault.what, fault.number) == (what, number)


def test_a_status_may_change(learned: Store) -> None:
    learned.sets.set_status("math", 2, "helps", "proven")
    assert learned.history.fault("math") is None


def test_a_head_that_was_noted_is_found_again_until_everything_is_made_anew(learned: Store, url: str) -> None:
    noted = learned.history.head("math")
    learned.sets.add_version("math", library.from_texts(["three"]), status="by hand")
    learned.sets.deploy("math", live=3, reason="", actor="a")
    assert learned.history.descends("math", noted)
    engine = create_engine(url)
    with engine.begin() as connection:
        for gone in ("history", "commits", "versions", "meta WHERE key = 'history math'"):
            connection.execute(text(f"DELETE FROM {gone}"))  # noqa: S608 - our names
    engine.dispose()
    for word in ("one", "two"):
        learned.sets.add_version("math", library.from_texts([word]), status="by hand")
    learned.sets.deploy("math", live=1, reason="", actor="a")
    assert learned.history.fault("math") is None
    assert not learned.history.descends("math", noted)


def test_versions_of_before_are_committed_by_the_migration(learned: Store, url: str) -> None:
    engine = create_engine(url)
    step = next(step for step in STEPS if any("CREATE TABLE commits" in str(one) for one in step))
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE commits"))
        connection.execute(text("DELETE FROM meta WHERE key = 'history math'"))
        for statement in step:
            take(connection, statement)
        origins = list(connection.execute(text("SELECT origin FROM commits")).scalars())
    engine.dispose()
    assert origins == ["migrated", "migrated"]
    assert learned.history.fault("math") is None
    learned.sets.deploy("math", live=2, reason="", actor="a")


def test_a_version_whose_model_has_a_character_that_a_database_replaces_is_deployed(store: Store) -> None:
    store.sets.add_version("math", library.from_texts(["one"]), status="unproven", policy_model="m\0x")
    assert store.sets.deploy("math", live=1, reason="", actor="a").live == 1
    assert store.history.fault("math") is None
