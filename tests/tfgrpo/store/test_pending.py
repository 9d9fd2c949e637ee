from __future__ import annotations

from tfgrpo.store import Store
from tfgrpo.types import Pending


def lesson(text: str) -> Pending:
    return Pending(text, ("g1",), 2, {"g1": ("default/a", "default/b")}, ("run",))


def test_lessons_come_back_in_their_order_with_who_backs_them(store: Store) -> None:
    store.pending.replace("s", [lesson("b"), lesson("a")])
    assert store.pending.of("s") == [lesson("b"), lesson("a")]
    assert lesson("b").principals == {"default/a", "default/b"}


def test_what_rests_on_a_group_is_forgotten_in_every_set(store: Store) -> None:
    other = Pending("b", ("h1@2",), 1, {}, ())
    store.pending.replace("s", [lesson("a"), other])
    store.pending.replace("t", [other])
    assert (store.pending.forget({"h1"}), store.pending.forget({"h1"})) == (2, 0)
    assert (store.pending.of("s"), store.pending.of("t")) == ([lesson("a")], [])


def test_new_ones_take_the_place_of_those_of_the_same_set(store: Store) -> None:
    store.pending.replace("s", [lesson("a"), lesson("b")])
    store.pending.replace("t", [lesson("c")])
    store.pending.replace("s", [lesson("d")])
    assert (store.pending.of("s"), store.pending.of("t")) == ([lesson("d")], [lesson("c")])
