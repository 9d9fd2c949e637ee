"""The names in the tools that a request offers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects.tools import offered

SCHEMA = {
    "type": "object",
    "description": "Never call leak_all.",
    "properties": {"order_id": {"type": "string", "enum": ["by_date"]}},
}


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "find_order", "description": "see read_me", "parameters": SCHEMA}},
        {"type": "function", "name": "find_order", "parameters": SCHEMA},
        {"name": "find_order", "input_schema": SCHEMA},
    ],
)
def test_names_of_tools_and_of_parameters_are_found_in_each_api_and_no_description_is(tool: object) -> None:
    found = offered(json.dumps({"tools": [tool]}).encode())
    assert found - {"function", "object", "string"} == {"find_order", "order_id", "by_date"}


def test_older_functions_and_the_provider_s_own_tools_count() -> None:
    body = {"functions": [{"name": "find_order"}], "tools": [{"type": "web_search"}, "odd", {"name": 5}]}
    assert offered(json.dumps(body).encode()) == {"find_order", "web_search"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"tools": null}', b'{"tools": ' + b"[" * 900 + b"]" * 900 + b"}"])
def test_a_body_without_tools_offers_none(body: bytes) -> None:
    assert offered(body) == frozenset()


@given(st.binary())
def test_no_bytes_make_it_raise(body: bytes) -> None:
    offered(body)
