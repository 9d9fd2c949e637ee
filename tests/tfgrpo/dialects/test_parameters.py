from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects.parameters import of_request

SCHEMA = {"name": "a", "schema": {"type": "object"}, "strict": True}
LEFT_OUT = {"model": "m", "stream": True, "n": 3, "temperature": 0, "tools": [{}], "tool_choice": "auto", "seed": 1}


@pytest.mark.parametrize(
    ("dialect", "asked", "parameters"),
    [
        ("chat", {"max_tokens": 9, "stop": ["."], "top_p": 0.5}, {"max_tokens": 9, "stop": ["."], "top_p": 0.5}),
        ("chat", {"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        ("chat", {"max_tokens": None}, {}),
        ("messages", {"max_tokens": 9, "stop_sequences": ["."]}, {"max_tokens": 9, "stop": ["."]}),
        ("responses", {"max_output_tokens": 9}, {"max_completion_tokens": 9}),
        (
            "responses",
            {"text": {"format": {"type": "json_schema", **SCHEMA}}},
            {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
        ),
        ("responses", {"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            "responses",
            {"text": {"format": {"type": "text"}}, "reasoning": {"effort": "low"}},
            {"reasoning_effort": "low"},
        ),
        ("completions", {"max_tokens": 9, "echo": True}, {"max_tokens": 9}),
    ],
)
def test_a_request_is_asked_again_as_a_chat_completion_that_asks_for_the_same(
    dialect: str, asked: dict[str, Any], parameters: dict[str, Any]
) -> None:
    assert of_request(dialect, json.dumps({**LEFT_OUT, **asked}).encode()) == parameters


@given(
    st.sampled_from(["chat", "responses", "messages", "completions", "other"]), st.binary() | st.from_regex(rb"\{.*\}")
)
def test_no_bytes_make_it_raise(dialect: str, body: bytes) -> None:
    of_request(dialect, body)


@pytest.mark.parametrize("odd", [1, [1], "x", {"format": 3}])
def test_fields_of_other_types_count_as_absent(odd: object) -> None:
    assert of_request("responses", json.dumps({"text": odd, "reasoning": odd}).encode()) == {}
