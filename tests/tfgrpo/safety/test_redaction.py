"""Secrets and personal data in a text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.safety.redaction import find, redact

SECRETS = {
    "sk-proj-abcdefghijklmnopqrstuvwx": "key",
    "sk-ant-api03-abcdefghijklmnop": "key",
    "AKIAIOSFODNN7EXAMPLE": "key",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "key",
    "xoxb-123456789012-abcdefghij": "key",
    "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4": "key",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIBOgIBAAJBAK\n-----END RSA PRIVATE KEY-----": "key",
    "aB3dE5gH7jK9mN1pQ3sT5vW": "key",
    "9f86d081884c7d659a2feaa0c55ad015": "key",
    "jane.doe+x@mail.example.org": "e-mail",
    "DE89 3704 0044 0532 0130 00": "IBAN",
    "GB82WEST12345698765432": "IBAN",
    "4012 8888 8888 1881": "card number",
    "378282246310005": "card number",
    "4111 1111 1111 1111": "card number",
    "4242424242424242": "card number",
    "(212) 555-0143": "telephone number",
    "212-555-0143": "telephone number",
    "+49 30 901820 4411": "telephone number",
    "0049 30 901820 4411": "telephone number",
    "00 44 (20) 7946-0958": "telephone number",
}

ORDINARY = [
    "DE89 3704 0044 0532 0130 01",
    "4012 8888 8888 1882",
    "31415926535897932384626433832795028841971",
    "1234567890123456",
    "4444 4444 4444 4444",
    "0012345678901234",
    "0001-12-31 10",
    "12+345+678+9012+3456+78",
    "x = 3.14159 and 2024-05-06 12:30:00",
    "550e8400-e29b-41d4-a716-446655440000",
    r"\frac{123456}{789012} \cdot \sqrt{2}",
    "getUserAccountByIdentifier",
    "antidisestablishmentarianism",
]


@pytest.mark.parametrize(("value", "kind"), SECRETS.items())
def test_what_has_the_form_of_a_secret_or_a_personal_datum_is_replaced(value: str, kind: str) -> None:
    assert redact(f"so: {value}, then") == f"so: [redacted {kind}], then"


@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_looks_a_little_like_one_stays(text: str) -> None:
    assert redact(text) == text


def test_a_value_after_its_name_is_replaced_and_the_name_stays() -> None:
    assert redact("password = hunter2x; api_key: 'abcdef1'") == "password = [redacted key]; api_key: '[redacted key]'"
    assert redact("https://bob:hunter2x@host/") == "https://bob:[redacted key]@host/"


def test_a_telephone_number_after_a_word_is_one_and_a_sum_is_not() -> None:
    assert redact("call +49 30 901820 4411") == "call [redacted telephone number]"
    assert redact("x +49 30 901820 4411") == "x +49 30 901820 4411"


def test_a_value_of_our_own_configuration_is_replaced_wherever_it_stands() -> None:
    assert redact("a my own word b my own word", ["my own word"]) == "a [redacted secret] b [redacted secret]"


def test_a_short_value_of_ours_is_left_alone() -> None:
    assert redact("a cat", ["cat"]) == "a cat"


@given(st.text())
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(alphabet="0123456789 +-.@:/=sk_aB"))
def test_what_is_found_stands_in_order_and_apart(text: str) -> None:
    found = find(text)
    assert all(left.end <= right.start for left, right in pairwise(found))
