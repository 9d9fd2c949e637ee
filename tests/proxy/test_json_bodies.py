from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import json_bodies
from proxy.errors import ProxyError


@given(st.binary())
def test_any_bytes_are_parsed_or_refused(body: bytes) -> None:
    with contextlib.suppress(ProxyError):
        json_bodies.parsed(body)


@given(st.text(alphabet='[]{}":,0123456789eE.-\\u d8NaInfity'))
def test_any_text_near_json_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(ProxyError):
        json_bodies.parsed(text.encode())


def test_a_path_reads_as_a_person_writes_it() -> None:
    assert json_bodies.path("[0]", "shares", "control") == "[0].shares.control"
    assert json_bodies.path("", "experiences", 1, "text") == "experiences[1].text"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"comment": "\\ud83d"}', "comment"),
        (b'[{}, {"comment": {"x": ["a", "\\ude00"]}}]', "[1].comment.x[1]"),
        (b'{"\\ud83d": 1}', None),
        (b'"\\ud83d"', None),
    ],
)
def test_half_a_surrogate_pair_is_a_400_that_names_the_field(body: bytes, param: str | None) -> None:
    with pytest.raises(ProxyError) as caught:
        json_bodies.parsed(body)
    assert (caught.value.status, caught.value.param) == (400, param)
    assert (param or "the body") in caught.value.message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_json_is_utf_8_and_nothing_else(encoding: str) -> None:
    with pytest.raises(ProxyError) as caught:
        json_bodies.parsed('{"comment": "é"}'.encode(encoding))
    assert (caught.value.status, caught.value.message) == (400, "the body is not JSON: it is not UTF-8 text")


@pytest.mark.parametrize("digits", ["9" * 5000, "-" + "9" * 5000])
def test_a_number_of_more_digits_than_python_reads_is_no_finite_one(digits: str) -> None:
    value = json_bodies.parsed(f'{{"value": {digits}, "choice": 12}}'.encode())
    assert (abs(value["value"]), value["choice"]) == (float("inf"), 12)
