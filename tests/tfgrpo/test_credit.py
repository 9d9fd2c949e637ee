from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.credit import exhausted

OPENAI = {
    "message": "You exceeded your current quota, please check your plan and billing details.",
    "type": "insufficient_quota",
    "param": None,
    "code": "insufficient_quota",
}
ANTHROPIC = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
GEMINI = {
    "code": 429,
    "message": "You exceeded your current quota, please check your plan and billing details. https://ai.google.dev",
    "status": "RESOURCE_EXHAUSTED",
}
RATE = {"message": "Rate limit reached for m on requests per min", "type": "requests", "code": "rate_limit_exceeded"}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": OPENAI}),
        (429, {"error": {"message": "no", "code": "insufficient_quota"}}),
        (429, {"error": {"message": "no", "type": "insufficient_quota"}}),
        (400, {"error": {"message": "no", "type": "invalid_request_error", "code": "billing_hard_limit_reached"}}),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": ANTHROPIC}}),
        (403, {"type": "error", "error": {"type": "billing_error", "message": "no"}}),
        (402, {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}}),
        (402, "not JSON"),
        (None, {"error": {"message": "This request requires more credits", "code": 402}}),
        (429, [{"error": OPENAI}]),
        (429, {"error": [OPENAI]}),
        (429, {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"error": OPENAI})}}}),
        (429, {"error": "insufficient_quota"}),
        (429, {"detail": "insufficient_quota: top up"}),
        (429, "litellm.RateLimitError: You exceeded your current quota. https://platform.openai.com/docs/guides"),
    ],
)
def test_a_refusal_for_want_of_money_is_one_in_any_form(status: int | None, body: Any) -> None:
    said = body if isinstance(body, str) else json.dumps(body)
    assert (exhausted(status, said), exhausted(status, said.encode()), exhausted(status, body)) == (True, True, True)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": RATE}),
        (429, {"error": GEMINI}),
        (429, "slow down"),
        (429, None),
        (429, {"error": None}),
        (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
        (403, {"error": {"type": "permission_error", "message": "not for you"}}),
        (400, {"detail": [{"loc": ["body"], "msg": "too long", "input": ANTHROPIC}]}),
        (500, {"error": OPENAI}),
        (None, {"error": {"message": "overloaded", "code": 502}}),
    ],
)
def test_any_other_refusal_is_none(status: int | None, body: Any) -> None:
    assert not exhausted(status, json.dumps(body))


@given(st.sampled_from([None, 200, 400, 403, 429]), st.binary() | st.text())
def test_no_body_raises(status: int | None, body: bytes | str) -> None:
    assert exhausted(status, body) in (True, False)


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["error", "code", "message"]), inner),
)


@given(NESTED)
def test_no_shape_raises(body: Any) -> None:
    assert exhausted(429, json.dumps(body)) in (True, False)


def test_a_body_nested_without_end_does_not_raise() -> None:
    assert not exhausted(429, b"[" * 100_000)
