from __future__ import annotations

import contextlib

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
