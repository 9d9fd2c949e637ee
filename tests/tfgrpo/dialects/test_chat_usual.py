from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects.chat import Chat

_TEXTS = st.text(max_size=4)
_CALL = {"id": _TEXTS, "type": st.just("function"), "function": st.fixed_dictionaries({"name": _TEXTS})}
_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
    optional={
        "content": st.none() | _TEXTS | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": _TEXTS})),
        "refusal": st.none() | _TEXTS,
        "tool_calls": st.none() | st.lists(st.fixed_dictionaries(_CALL), max_size=2),
        "function_call": st.none() | st.fixed_dictionaries({"name": _TEXTS, "arguments": _TEXTS}),
        "tool_call_id": st.none() | _TEXTS,
        "name": _TEXTS,
    },
)


@given(
    st.fixed_dictionaries(
        {"messages": st.lists(_MESSAGE, max_size=4)},
        optional={
            "model": st.none() | _TEXTS,
            "n": st.none() | st.integers(-1, 300),
            "metadata": st.none() | st.dictionaries(st.just("session_id"), _TEXTS),
            "temperature": st.floats(allow_nan=False, allow_infinity=False),
        },
    )
)
def test_a_request_reads_the_same_whether_or_not_it_keeps_to_the_api(request: dict[str, Any]) -> None:
    body = json.dumps(request)
    # A field of another type sends it the long way, and counts as absent.
    odd = body[:-1] + ', "stream": "no"}'
    assert Chat().read_request(body.encode()) == Chat().read_request(odd.encode())


@given(
    st.fixed_dictionaries(
        {
            "choices": st.lists(
                st.fixed_dictionaries(
                    {"message": _MESSAGE | st.fixed_dictionaries({"role": st.just(""), "content": _TEXTS})},
                    optional={
                        "index": st.none() | st.integers(-1, 3),
                        "finish_reason": st.none() | _TEXTS,
                        "logprobs": st.none(),
                    },
                ),
                max_size=3,
            )
        },
        optional={
            "id": st.none() | _TEXTS,
            "usage": st.none()
            | st.fixed_dictionaries(
                {}, optional=dict.fromkeys(("prompt_tokens", "completion_tokens"), st.none() | st.integers(-1, 2**31))
            ),
        },
    )
)
def test_an_answer_reads_the_same_whether_or_not_it_keeps_to_the_api(answer: dict[str, Any]) -> None:
    usual = json.dumps(answer).encode()
    # A choice that is no object counts as absent, and sends the answer the long way.
    odd = json.dumps({**answer, "choices": [*answer["choices"], 7]}).encode()
    assert Chat().read_response(usual, "application/json") == Chat().read_response(odd, "application/json")


_PIECE = st.fixed_dictionaries(
    {},
    optional={
        "index": st.none() | st.integers(-1, 2),
        "finish_reason": st.none() | _TEXTS,
        "delta": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "role": st.just("assistant"),
                "content": st.none() | _TEXTS,
                "refusal": st.none() | _TEXTS,
                "tool_calls": st.none() | st.lists(st.fixed_dictionaries(_CALL, optional={"index": st.integers(0, 1)})),
                "function_call": st.none() | st.fixed_dictionaries({"name": _TEXTS}),
            },
        ),
    },
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"choices": st.none() | st.lists(_PIECE, max_size=2)},
            optional={
                "id": st.none() | _TEXTS,
                "usage": st.none() | st.dictionaries(st.sampled_from(["prompt_tokens"]), st.integers(-1, 9)),
                "error": st.none() | st.just({"message": "overloaded"}),
            },
        ),
        max_size=4,
    ),
    st.sampled_from(["data: [DONE]\n\n", "data: [DONE]", "data: {\n\n", "data: [DONE]\n\ndata: {}\n\n", ""]),
)
def test_a_stream_reads_the_same_whether_or_not_it_keeps_to_the_api(events: list[dict[str, Any]], end: str) -> None:
    usual = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + end
    # A comment in front sends it the long way.
    odd = f": a comment\n\n{usual}"
    read = Chat().read_response
    assert read(usual.encode(), "text/event-stream") == read(odd.encode(), "text/event-stream")
