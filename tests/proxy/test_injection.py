from __future__ import annotations

import json
from typing import Any

import pytest

from proxy import injection
from tfgrpo import library

BLOCK = library.render(library.from_texts(["Check the units.", 'Say "é" \\ and <b>.']), name="math", version=3)
OLDER = library.render(library.from_texts(["An older lesson."]), name="math", version=2)


def _injected(body: bytes, block: str = BLOCK) -> bytes:
    changed = injection.inject(body, "chat", block)
    assert changed is not None
    return changed


def _messages(body: bytes) -> Any:
    return json.loads(body)["messages"]


def _body(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"model": "m", "messages": messages, "n": 1}).encode()


USER = {"role": "user", "content": "2+2?"}


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_block_follows_the_text_of_a_leading_system_message_whose_role_stays(role: str) -> None:
    first = {"role": role, "content": "Be brief."}
    assert _messages(_injected(_body(first, USER))) == [{"role": role, "content": f"Be brief.\n\n{BLOCK}"}, USER]


def test_without_a_leading_system_message_one_is_put_in_front() -> None:
    assert _messages(_injected(_body(USER))) == [{"role": "system", "content": BLOCK}, USER]


def test_an_empty_system_text_gets_the_block_alone() -> None:
    assert _messages(_injected(_body({"role": "system", "content": ""}, USER)))[0]["content"] == BLOCK


def test_only_the_first_of_two_system_messages_gets_the_block() -> None:
    two = [{"role": "system", "content": "A"}, {"role": "system", "content": "B"}]
    assert [m["content"] for m in _messages(_injected(_body(*two)))] == [f"A\n\n{BLOCK}", "B"]


def test_later_system_messages_are_neither_moved_nor_merged() -> None:
    later = {"role": "system", "content": "reminder"}
    assert _messages(_injected(_body(USER, later))) == [{"role": "system", "content": BLOCK}, USER, later]


def test_an_array_of_parts_gets_one_more_and_the_others_stay() -> None:
    part = {"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}}
    first = _messages(_injected(_body({"role": "system", "content": [part]})))[0]
    assert first["content"] == [part, {"type": "text", "text": BLOCK}]


def test_an_empty_array_of_parts_gets_the_block_as_its_only_one() -> None:
    first = _messages(_injected(_body({"role": "system", "content": []})))[0]
    assert first["content"] == [{"type": "text", "text": BLOCK}]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"messages":[}', "not JSON"),
        (b'{"model":"m"}', "no array of messages"),
        (b'{"messages":{}}', "no array of messages"),
        (b'{"messages":[]}', "no first message"),
        (b'{"messages":["hi"]}', "no first message"),
        (b'{"messages":[{"role":"system"}]}', "no text"),
        (b'{"messages":[{"role":"system","content":null}]}', "no text"),
        (b'{"messages":[{"role":"system","content":7}]}', "no text"),
        (b'{"messages":[{"role":"system","content":{}}]}', "no text"),
    ],
)
def test_what_the_upstream_would_refuse_is_left_alone_and_says_why(body: bytes, reason: str) -> None:
    assert reason in (injection.injectable(body, "chat", "") or "")
    assert injection.inject(body, "chat", BLOCK) is None


def test_an_encoded_body_is_left_alone() -> None:
    assert "gzip" in (injection.injectable(_body(USER), "chat", "gzip") or "")


def test_another_api_is_left_alone() -> None:
    assert "'morse'" in (injection.injectable(_body(USER), "morse", "") or "")


def test_a_plain_body_can_be_changed() -> None:
    assert injection.injectable(_body(USER), "chat", "identity") is None


def test_an_empty_block_changes_nothing() -> None:
    body = _body(USER)
    assert injection.inject(body, "chat", "") is body


@pytest.mark.parametrize("name", [b'"messages"', b'"m\\u0065ssages"'])
def test_of_two_lists_of_messages_the_one_that_counts_is_changed(name: bytes) -> None:
    body = b'{"messages":[{"role":"user","content":"a"}],' + name + b':[{"role":"user","content":"b"}]}'
    assert _messages(_injected(body)) == [{"role": "system", "content": BLOCK}, {"role": "user", "content": "b"}]


def test_a_role_spelled_with_escapes_is_the_same_role() -> None:
    body = b'{"messages":[{"role":"\\u0073ystem","content":"A"}]}'
    assert [m["content"] for m in _messages(_injected(body))] == [f"A\n\n{BLOCK}"]


def _spelled(text: str, spelling: str) -> bytes:
    if spelling == "every character escaped":
        units = text.encode("utf-16-be").hex()
        return b'"' + "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)).encode() + b'"'
    if spelling == "as Go writes it":
        return json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e").encode()
    return json.dumps(text, ensure_ascii=spelling == "ascii").encode()


_SPELLINGS = ["ascii", "utf-8", "as Go writes it", "every character escaped"]


@pytest.mark.parametrize("spelling", _SPELLINGS)
def test_an_echoed_block_is_replaced_in_whatever_spelling(spelling: str) -> None:
    content = _spelled(f"Ä😀 \t\n\n{OLDER} tail", spelling)
    body = b'{"messages":[{"role":"system","content":' + content + b"}]}"
    assert _messages(_injected(body))[0]["content"] == f"Ä😀 \t tail\n\n{BLOCK}"


def test_echoes_are_taken_out_of_every_system_message() -> None:
    body = _body({"role": "system", "content": f"{OLDER}A\n\n{OLDER}"}, USER, {"role": "developer", "content": OLDER})
    assert [m["content"] for m in _messages(_injected(body))] == [f"A\n\n{BLOCK}", "2+2?", ""]


def test_an_echo_in_a_user_message_is_the_users_own_text() -> None:
    quoting = {"role": "user", "content": f"What is this? {OLDER}"}
    assert _messages(_injected(_body(quoting)))[1] == quoting


def test_an_empty_block_takes_echoes_out() -> None:
    body = _body({"role": "system", "content": "A"}, USER)
    assert _injected(_injected(body), "") == body


def test_parts_that_are_nothing_but_echoes_go_as_a_whole() -> None:
    echo, own = {"type": "text", "text": OLDER}, {"type": "text", "text": "A"}
    for parts in ([echo, own, echo], [echo, echo, own], [own, echo, echo]):
        body = _body({"role": "system", "content": parts})
        assert _messages(_injected(body, ""))[0]["content"] == [own]
        assert _messages(_injected(body))[0]["content"] == [own, {"type": "text", "text": BLOCK}]


def test_a_part_that_carries_more_than_an_echo_keeps_the_rest() -> None:
    part = {"type": "text", "text": f"A\n\n{OLDER}", "cache_control": {"type": "ephemeral"}}
    body = _body({"role": "system", "content": [part]})
    assert _messages(_injected(body, ""))[0]["content"] == [{**part, "text": "A"}]


def test_a_marker_without_an_end_in_the_clients_text_swallows_nothing() -> None:
    text = OLDER.removesuffix(library.BLOCK_END)
    once = _injected(_body({"role": "system", "content": text}))
    assert _messages(once)[0]["content"] == f"{text}\n\n{BLOCK}"
    assert _injected(once) == once


def test_one_reading_serves_any_block() -> None:
    spot = injection.find(_body(USER), "chat")
    assert isinstance(spot, injection.Spot)
    assert (spot.inject(BLOCK), spot.inject("")) == (_injected(_body(USER)), _body(USER))


def test_the_model_is_replaced_and_nothing_else() -> None:
    assert injection.replace_model(b'{ "model" : "a", "x":1e400}', 'b"é') == b'{ "model" : "b\\"\\u00e9", "x":1e400}'


@pytest.mark.parametrize("body", [b"{}", b'{"model":1}', b'{"model":', b"\xff"])
def test_without_a_readable_model_none_is_put_in(body: bytes) -> None:
    assert injection.replace_model(body, "b") is None
