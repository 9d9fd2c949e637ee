from __future__ import annotations

import json
from typing import Any

import pytest

from proxy import injection
from tfgrpo import library

BLOCK = library.render(library.from_texts(["Check the units.", 'Say "é" \\ and <b>.']), name="math", version=3)
OLDER = library.render(library.from_texts(["An older lesson."]), name="math", version=2)
USER = {"role": "user", "content": "2+2?"}
MARK = {"type": "ephemeral", "ttl": "1h"}


def _injected(dialect: str, body: bytes | dict[str, Any], block: str = BLOCK) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    changed = injection.inject(raw, dialect, block)
    assert changed is not None
    return changed


def _instructions(**fields: Any) -> Any:
    return json.loads(_injected("responses", {"input": "hi", **fields}))["instructions"]


def _system(**fields: Any) -> Any:
    return json.loads(_injected("messages", {"messages": [USER], **fields}))["system"]


def _prompt(prompt: Any, block: str = BLOCK) -> Any:
    return json.loads(_injected("completions", {"prompt": prompt}, block))["prompt"]


def _why_not(dialect: str, body: bytes) -> str:
    assert injection.inject(body, dialect, BLOCK) is None
    return injection.injectable(body, dialect, "") or ""


def test_instructions_that_are_absent_become_the_first_member() -> None:
    body = b' {\n"input" : "hi", "x":1e400}'
    assert _injected("responses", body, "B") == b' {"instructions":"B",\n"input" : "hi", "x":1e400}'


def test_instructions_that_are_null_are_set_where_they_stand() -> None:
    body = b'{"input":"hi","instructions": null ,"store":false}'
    assert _injected("responses", body, "B") == b'{"input":"hi","instructions": "B" ,"store":false}'


def test_the_block_follows_instructions() -> None:
    assert _instructions(instructions="Be brief.") == f"Be brief.\n\n{BLOCK}"


def test_empty_instructions_become_the_block() -> None:
    assert _instructions(instructions="") == BLOCK


def test_instructions_of_two_members_are_those_that_count() -> None:
    body = b'{"instructions":"A","input":"hi","instr\\u0075ctions":"B"}'
    assert _injected("responses", body, "!") == b'{"instructions":"A","input":"hi","instr\\u0075ctions":"B\\n\\n!"}'


def test_a_name_that_stands_elsewhere_is_no_member() -> None:
    asked = [{"role": "user", "content": 'my "instructions": none'}]
    assert _instructions(input=asked, tools=[{"parameters": {"instructions": "x"}}]) == BLOCK


def test_echoed_instructions_are_replaced() -> None:
    assert _instructions(instructions=f"Be brief.\n\n{OLDER}") == f"Be brief.\n\n{BLOCK}"


def test_a_further_turn_gets_instructions_too() -> None:
    assert _instructions(previous_response_id="resp_1") == BLOCK


def test_a_request_that_has_no_input_of_its_own_is_injected() -> None:
    body = b'{"prompt":{"id":"pmpt_1"}}'
    assert _injected("responses", body, "B") == b'{"instructions":"B","prompt":{"id":"pmpt_1"}}'


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{}", "empty"),
        (b'{"input":7}', "neither a text nor an array"),
        (b'{"input":{}}', "neither a text nor an array"),
        (b'{"input":"a","instructions":["b"]}', "no text"),
        (b'{"input":"a","instructions":7}', "no text"),
        (b'{"input":"a"', "not JSON"),
    ],
)
def test_a_response_that_the_upstream_would_refuse_is_left_alone(body: bytes, reason: str) -> None:
    assert reason in _why_not("responses", body)


def test_an_absent_system_becomes_a_string() -> None:
    body = b'{"max_tokens":1,"messages":[]}'
    assert _injected("messages", body, "B") == b'{"system":"B","max_tokens":1,"messages":[]}'


def test_a_system_that_is_null_becomes_a_string() -> None:
    assert _system(system=None) == BLOCK


def test_the_block_follows_a_system_string() -> None:
    assert _system(system="Be brief.") == f"Be brief.\n\n{BLOCK}"


def test_a_system_array_gets_one_more_block_without_a_cache_mark_and_the_others_stay() -> None:
    own = [{"type": "text", "text": "A"}, {"type": "text", "text": "B", "cache_control": MARK}]
    assert _system(system=own) == [*own, {"type": "text", "text": BLOCK}]


def test_an_empty_system_array_gets_the_block_as_its_only_one() -> None:
    assert _system(system=[]) == [{"type": "text", "text": BLOCK}]


def test_an_echoed_system_block_goes_as_a_whole() -> None:
    own = {"type": "text", "text": "A", "cache_control": MARK}
    assert _system(system=[own, {"type": "text", "text": OLDER}]) == [own, {"type": "text", "text": BLOCK}]


def test_no_byte_of_the_messages_changes() -> None:
    messages = b'[ {"role":"user","content":[{"type":"text","text":"\\ud83d","cache_control":{"type":"ephemeral"}}]} ]'
    assert messages in _injected("messages", b'{"messages":' + messages + b',"system":"A"}')


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"system":"A"}', "no array of messages"),
        (b'{"messages":"hi"}', "no array of messages"),
        (b'{"messages":[],"system":7}', "no text"),
        (b'{"messages":[],"system":{"type":"text","text":"A"}}', "no text"),
    ],
)
def test_a_message_that_the_upstream_would_refuse_is_left_alone(body: bytes, reason: str) -> None:
    assert reason in _why_not("messages", body)


def test_a_prompt_gets_the_block_in_front() -> None:
    assert _prompt("Once") == f"{BLOCK}\n\nOnce"


def test_each_of_several_prompts_gets_the_block() -> None:
    assert _prompt(["A", "B"]) == [f"{BLOCK}\n\nA", f"{BLOCK}\n\nB"]


@pytest.mark.parametrize("prompt", [[1, 2], [[1, 2], [3]], [], ["a", 7], None, 7, {}])
def test_a_prompt_that_is_no_text_is_left_alone(prompt: Any) -> None:
    assert "no text" in _why_not("completions", json.dumps({"prompt": prompt}).encode())


def test_without_a_prompt_nothing_is_injected() -> None:
    assert "no prompt" in _why_not("completions", b'{"model":"m"}')


@pytest.mark.parametrize("echo", [f"{OLDER}\n\n", f"{OLDER}\n\n{OLDER}\n\n", f"{OLDER}"])
def test_blocks_that_a_prompt_echoes_in_front_are_replaced(echo: str) -> None:
    assert _prompt(f"{echo}Once") == f"{BLOCK}\n\nOnce"


def test_a_block_that_a_prompt_echoes_further_on_is_taken_out() -> None:
    assert _prompt(f"Header\n\n{OLDER}\n\nOnce") == f"{BLOCK}\n\nHeader\n\nOnce"


def test_an_empty_block_gives_the_clients_prompts_back() -> None:
    assert _prompt(_prompt(["A", "\n\nB", ""]), "") == ["A", "\n\nB", ""]


@pytest.mark.parametrize("dialect", ["responses", "messages", "completions"])
def test_an_empty_block_changes_nothing(dialect: str) -> None:
    body = b'{"messages":[],"input":"a","prompt":"a"}'
    assert injection.inject(body, dialect, "") is body
