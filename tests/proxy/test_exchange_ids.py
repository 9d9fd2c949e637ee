from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.exchange_ids import ExchangeIds
from proxy.settings import DEFAULT_APP

IDS = ExchangeIds(b"s" * 32)


def test_an_id_is_visible_ascii_without_a_slash() -> None:
    made = IDS.new("shop", "c1")
    assert made.startswith("ex-")
    assert all("!" <= letter <= "~" and letter != "/" for letter in made)


def test_ids_do_not_repeat() -> None:
    assert len({IDS.new("shop", "c1") for _ in range(1000)}) == 1000


def test_our_own_id_is_genuine() -> None:
    assert IDS.genuine(IDS.new("shop", "c1"))


def test_the_id_of_another_installation_is_not_genuine() -> None:
    assert not IDS.genuine(ExchangeIds(b"x" * 32).new("shop", "c1"))


@given(st.integers(0, 55), st.sampled_from("0123456789abcdefghijklmnopqrstuv"))
def test_an_id_with_one_changed_letter_is_owned_by_nobody(place: int, letter: str) -> None:
    made = IDS.new("shop", "c1")
    forged = made[: 3 + place] + letter + made[4 + place :]
    assert forged == made or not IDS.owned(forged, "shop", "c1")


@given(st.text(max_size=80))
def test_no_text_makes_the_check_fail_with_an_error(text: str) -> None:
    assert not IDS.genuine(text)
    assert not IDS.owned(f"ex-{text}", "shop", "c1")


def test_every_key_of_a_configured_app_owns_its_exchanges() -> None:
    assert IDS.owned(IDS.new("shop", "c1"), "shop", "c2")


def test_another_app_does_not_own_the_exchange() -> None:
    assert not IDS.owned(IDS.new("shop", "c1"), "bank", "c1")


def test_in_the_default_app_only_the_same_credential_owns_an_exchange() -> None:
    made = IDS.new(DEFAULT_APP, "c1")
    assert IDS.owned(made, DEFAULT_APP, "c1")
    assert not IDS.owned(made, DEFAULT_APP, "c2")


def test_upper_case_is_another_id() -> None:
    assert not IDS.genuine("ex-" + IDS.new("shop", "c1")[3:].upper())
