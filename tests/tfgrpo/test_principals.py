from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tfgrpo.store.examples import exchange
from tests.tfgrpo.test_traffic import Log, log, store
from tfgrpo import traffic
from tfgrpo.principals import Principals, end_users
from tfgrpo.replay import logged_tasks
from tfgrpo.store import Store
from tfgrpo.teaching import EVERYONE, Teaching
from tfgrpo.types import Bodies

__all__ = ["log", "store"]

BY_USER = Teaching(by_user=True)


def bodies(**request: Any) -> Bodies:
    return Bodies(json.dumps(request).encode(), b"", "", "", "")


@pytest.mark.parametrize(
    "body", [{"user": "ann"}, {"safety_identifier": "ann"}, {"metadata": {"user_id": "ann"}, "user": 5}]
)
def test_an_end_user_is_who_the_request_names(body: dict[str, Any]) -> None:
    assert end_users(bodies(**body)) == {"ann"}


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b'{"metadata": []}', b"[" * 100_000])
def test_what_is_no_object_names_nobody(raw: bytes) -> None:
    assert end_users(Bodies(raw, b"", "", "", "")) == set()


def test_a_key_is_a_principal_within_its_app_whatever_users_it_names(store: Store) -> None:
    principals = Principals(store, EVERYONE)
    made = exchange(app="shop", credential="k")
    assert principals.of(made, bodies(user="ann")) == principals.of(made, None) == "shop/k"
    assert principals.of(exchange(app="web", credential="k"), None) != "shop/k"


def test_end_users_are_principals_where_that_is_asked_for_and_their_names_are_nowhere(store: Store) -> None:
    principals = Principals(store, BY_USER)
    made = exchange(app="shop", credential="k")
    ann, ben, nobody = (principals.of(made, bodies(**named)) for named in ({"user": "ann"}, {"user": "ben"}, {}))
    assert len({ann, ben, nobody}) == 3
    assert nobody == "shop/k"
    assert "ann" not in ann.removeprefix("shop/k")
    assert principals.of(made, bodies(metadata={"user_id": "ann"})) == ann
    assert principals.of(exchange(app="shop", credential="other"), bodies(user="ann")) != ann


def test_groups_and_logged_tasks_count_for_the_users_who_made_them(store: Store, log: Log) -> None:
    for reward, user in ((1.0, "ann"), (0.0, "ben")):
        log.add("1+1?", "2", reward=reward, credential="k", user=user)
    (group,) = traffic.labelled_groups(store, teaching=BY_USER)
    (askers,) = logged_tasks(store, teaching=BY_USER).principals.values()
    assert (len(group.principals), askers) == (2, group.principals)
    assert traffic.labelled_groups(store)[0].principals == ("default/k",)
