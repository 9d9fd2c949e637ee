from __future__ import annotations

from tfgrpo.store import Store


def test_a_store_begins_without_a_bypass(store: Store) -> None:
    assert store.bypass.history() == []


def test_each_switch_stands_in_the_history_with_its_reason(store: Store, url: str) -> None:
    store.bypass.switch(on=True, reason="it is slow", actor="me")
    store.bypass.switch(on=False, reason="it was not us", actor="me")
    other = Store.open(url)
    found = [(one.number, one.bypass, one.reason) for one in other.bypass.history()]
    assert found == [(2, False, "it was not us"), (1, True, "it is slow")]
    assert [one.number for one in other.bypass.history(1)] == [2]
    other.close()
