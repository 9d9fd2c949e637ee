"""What holds of an injection whatever the request, for each API."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import injection
from tests.proxy.raw_json import array_of, body_of, object_of, odd_text, space, text_part, value
from tfgrpo import library

BLOCK = library.render(library.from_texts(["Check the units.", 'Say "é" \\ and <b>.']), name="math", version=3)
OLDER = library.render(library.from_texts(["An older lesson."]), name="math", version=2)


@st.composite
def _message(draw: st.DrawFn) -> bytes:
    role = draw(st.sampled_from([b'"system"', b'"developer"', b'"user"', b'"syst\\u0065m"']))
    content = draw(odd_text | array_of(text_part | object_of(value, st.sampled_from(["type", "text"]))))
    fields = [b'"role":' + draw(space) + role, b'"content" :' + content, b'"x":' + draw(value)]
    return draw(space) + b"{" + (b"," + draw(space)).join(draw(st.permutations(fields))) + b"}"


def _after(own: Any) -> Any:
    """What stands behind a text of the client's own."""
    if isinstance(own, list):
        return [*own, {"type": "text", "text": BLOCK}]
    return f"{own}\n\n{BLOCK}" if own else BLOCK


def _chat(body: Any) -> None:
    first = body["messages"][0]
    if first["role"] in ("system", "developer"):
        first["content"] = _after(first["content"])
    else:
        body["messages"].insert(0, {"role": "system", "content": BLOCK})


def _responses(body: Any) -> None:
    body["instructions"] = _after(body.get("instructions"))


def _messages(body: Any) -> None:
    body["system"] = _after(body.get("system"))


def _completions(body: Any) -> None:
    asked = body["prompt"]
    body["prompt"] = [f"{BLOCK}\n\n{one}" for one in asked] if isinstance(asked, list) else f"{BLOCK}\n\n{asked}"


@dataclass(frozen=True, slots=True)
class Api:
    """An API: any request of it, and what injecting does to one as it is read."""

    name: str
    requests: st.SearchStrategy[bytes]
    effect: Callable[[Any], None]


_null = st.just(b"null")
_listed = array_of(_message(), 1)
APIS = [
    Api("chat", body_of(messages=(_listed, 1)), _chat),
    Api("responses", body_of(input=(odd_text | _listed, 0), instructions=(odd_text | _null, 0)), _responses),
    Api("messages", body_of(messages=(_listed, 1), system=(odd_text | array_of(text_part) | _null, 0)), _messages),
    Api("completions", body_of(prompt=(odd_text | array_of(odd_text, 1), 1)), _completions),
]
every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
_data = given(data=st.data())


def _read(body: bytes) -> Any:
    return json.loads(body, parse_int=str, parse_float=str)


def _injected(api: Api, body: bytes, block: str = BLOCK) -> bytes:
    changed = injection.inject(body, api.name, block)
    assert changed is not None
    return changed


@every_api
@_data
def test_taking_the_injected_spans_out_gives_the_body_back(api: Api, data: st.DataObject) -> None:
    body = data.draw(api.requests)
    spot = injection.find(body, api.name)
    assert isinstance(spot, injection.Spot)
    changed = spot.inject(BLOCK)
    replaced = sum(stop - start for start, stop in spot.at)
    size = (len(changed) - len(body) + replaced) // len(spot.at)
    for start, stop in spot.at:
        changed = changed[:start] + body[start:stop] + changed[start + size :]
    assert changed == body


@every_api
@_data
def test_what_is_read_differs_in_the_injection_alone(api: Api, data: st.DataObject) -> None:
    body = data.draw(api.requests)
    expected = _read(body)
    api.effect(expected)
    assert _read(_injected(api, body)) == expected


@every_api
@_data
def test_injecting_again_changes_nothing(api: Api, data: st.DataObject) -> None:
    once = _injected(api, data.draw(api.requests))
    assert _injected(api, once) == once


@every_api
@_data
def test_replacing_an_older_block_is_injecting_into_the_clients_own_body(api: Api, data: st.DataObject) -> None:
    body = data.draw(api.requests)
    assert _injected(api, _injected(api, body, OLDER)) == _injected(api, body)


@every_api
@given(body=st.binary(max_size=80) | st.text('{}[]":,\\messagrolcntpi', max_size=60).map(str.encode))
def test_whatever_bytes_come_nothing_raises(api: Api, body: bytes) -> None:
    injection.inject(body, api.name, BLOCK)
    injection.replace_model(body, "m")


@st.composite
def _usual_members(draw: st.DrawFn) -> bytes:
    """The members of a chat as SDKs write it, or nearly so."""
    gap = draw(space)
    role = draw(st.sampled_from([b'"system"', b'"developer"', b'"user"']))
    more = draw(st.sampled_from([b"", b',"name":"x"', b',"content":"twice"', b',"role":"user"']))
    first = b"".join(
        (b"{", gap, b'"role":', role, gap, b',"content":', gap, draw(odd_text | st.just(b'""')), gap, more, b"}")
    )
    tail = draw(st.sampled_from([b"", b',"n": 1', b',"messages" :[{"role":"user","content":"b"}]', b',"x":"messages"']))
    named = draw(st.sampled_from([b"", b'"model": "m",', b'"n":1,']))
    return b"".join((named, gap, b'"messages"', gap, b":[", gap, first, b',{"role":"user","content":"a"}]', tail))


@given(_usual_members())
def test_a_chat_as_sdks_write_it_is_changed_as_any_other(members: bytes) -> None:
    # A member in front sends it the long way.
    odd = injection.inject(b'{"x":0,' + members + b"}", "chat", BLOCK)
    assert odd is not None
    assert injection.inject(b"{" + members + b"}", "chat", BLOCK) == odd.replace(b'"x":0,', b"", 1)
