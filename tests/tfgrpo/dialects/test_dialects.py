from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo import dialects
from tfgrpo.dialects.chat import Chat

APIS = [
    ("/chat/completions", "chat"),
    ("/responses", "responses"),
    ("/messages", "messages"),
    ("/completions", "completions"),
]


@pytest.mark.parametrize(("path", "name"), APIS)
def test_each_api_is_read_by_its_dialect_whose_name_finds_it_again(path: str, name: str) -> None:
    found = dialects.dialect_of(path)
    assert found is not None
    assert (found.name, found.turn) == (name, True)
    assert dialects.by_name(name) is found


def test_to_count_tokens_is_no_turn_of_a_conversation() -> None:
    found = dialects.dialect_of("/messages/count_tokens")
    assert found is not None
    assert not found.turn


@pytest.mark.parametrize(
    "path", ["/embeddings", "/responses/resp_1", "/responses/resp_1/input_items", "/messages/batches", "/chat", ""]
)
def test_a_path_that_we_do_not_read_has_no_dialect(path: str) -> None:
    assert dialects.dialect_of(path) is None


def test_an_exchange_that_was_not_read_has_no_dialect() -> None:
    assert dialects.by_name(None) is None
    assert dialects.by_name("morse") is None


_text = st.text(max_size=9)
_call = st.fixed_dictionaries({"id": _text, "function": st.fixed_dictionaries({"name": _text, "arguments": _text})})


@given(st.fixed_dictionaries({"role": st.just("assistant"), "content": _text | st.none()}), st.lists(_call, max_size=2))
def test_a_chat_answer_reads_as_it_will_when_a_client_sends_it_back(
    said: dict[str, str | None], calls: list[dict[str, object]]
) -> None:
    message = {**said, "refusal": None, "tool_calls": calls}
    answer = Chat().read_response(json.dumps({"choices": [{"message": message}]}).encode(), "application/json")
    again = Chat().read_request(json.dumps({"messages": [message]}).encode())
    assert answer is not None
    assert again is not None
    assert answer.choices[0].message == again.messages[0]
