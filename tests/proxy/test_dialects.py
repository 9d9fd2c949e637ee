"""Each API end to end through a real proxy: injected, recorded, linked, labelled, relayed as it came."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

import pytest

from proxy import injection
from tests.conftest import Answered, RunningProxy, StartProxy, StartUpstream
from tests.proxy.apis import ALL, CONVERSATIONS, MESSAGES, RESPONSES, Api, final, speaks
from tests.upstreams import RawUpstream, answer, chunk, chunked_head
from tfgrpo import library

LESSON = "Check the units."
BLOCK = library.render(library.from_texts([LESSON]), name="math", version=1)
MATH = {"x-tfgrpo-set": "math"}
TOOLS = [{"type": "function", "name": "f", "parameters": {}, "input_schema": {"type": "object"}}]

every_api = pytest.mark.parametrize("api", ALL, ids=lambda api: api.name)
every_conversation = pytest.mark.parametrize("api", CONVERSATIONS, ids=lambda api: api.name)
streaming_or_not = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(speaks)


@pytest.fixture
def proxy(start_proxy: StartProxy, upstream: RawUpstream) -> RunningProxy:
    """A proxy whose set `math` is deployed with one lesson."""
    running = start_proxy(upstream.base_url)
    running.deploy("math", LESSON)
    return running


def _send(proxy: RunningProxy, path: str, body: bytes | dict[str, Any], **headers: str) -> Answered:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return proxy.request("POST", path, body, {"authorization": "Bearer sk-client", **MATH, **named})


@every_api
@streaming_or_not
def test_the_block_arrives_and_all_else_is_what_was_sent(
    proxy: RunningProxy, upstream: RawUpstream, api: Api, stream: bool
) -> None:
    sent = json.dumps({**api.first, "stream": stream, "big": 2**70}).encode().replace(b'"unknown": 1', b'"u":1e400')
    answered = _send(proxy, api.path, sent)
    assert upstream.wait_seen().body == injection.inject(sent, api.name, BLOCK)
    assert BLOCK in api.prior(json.loads(upstream.seen[0].body))
    assert (answered.headers["x-tfgrpo-set"], answered.headers["x-tfgrpo-arm"]) == ("math@1", "live")


@every_api
@streaming_or_not
def test_an_exchange_is_recorded_with_its_id_and_its_tokens(proxy: RunningProxy, api: Api, stream: bool) -> None:
    answered = _send(proxy, api.path, {**api.first, "stream": stream})
    (one,) = proxy.recorded()
    assert (one.dialect, one.outcome, one.model, one.version) == (api.name, "complete", "m", 1)
    assert one.completion_id is not None
    assert one.completion_id.encode() in answered.body
    assert (one.prompt_tokens, one.completion_tokens) == ((None, None) if stream and api.name == "chat" else (3, 2))


@every_conversation
@streaming_or_not
def test_the_next_turn_is_linked_with_no_help_of_the_client(proxy: RunningProxy, api: Api, stream: bool) -> None:
    asked = {**api.first, "stream": stream}
    answered = _send(proxy, api.path, asked)
    _send(proxy, api.path, api.then(asked, final(api, answered.body) if stream else answered.json))
    first, second = proxy.recorded()
    assert (second.trajectory, second.parent) == (first.trajectory, first.id)


@streaming_or_not
def test_a_previous_response_id_links(proxy: RunningProxy, upstream: RawUpstream, stream: bool) -> None:
    answered = _send(proxy, RESPONSES.path, {"model": "m", "input": "2+2?", "stream": stream})
    previous = final(RESPONSES, answered.body)["id"] if stream else answered.json["id"]
    _send(proxy, RESPONSES.path, {"model": "m", "input": "and 3+3?", "previous_response_id": previous})
    assert BLOCK in upstream.seen[1].json["instructions"]
    first, second = proxy.recorded()
    assert (second.trajectory, second.parent) == (first.trajectory, first.id)


def test_items_that_are_named_instead_of_repeated_link(proxy: RunningProxy) -> None:
    asked = [{"role": "user", "content": "2+2?"}]
    for _ in range(2):
        output = _send(proxy, RESPONSES.path, {"model": "m", "input": asked}).json["output"]
        references = [{"type": "item_reference", "id": item["id"]} for item in output]
        asked = [*asked, *references, {"role": "user", "content": "and 3+3?"}]
    _send(proxy, RESPONSES.path, {"model": "m", "input": asked})
    first, second, third = proxy.recorded()
    assert (second.parent, third.parent) == (first.id, second.id)
    assert {one.arm for one in (first, second, third)} == {"live"}


def test_the_turns_of_a_conversation_that_the_api_keeps_are_one_trajectory(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    said = {"id": "resp_1", "status": "completed", "output": [], "conversation": {"id": "conv_1"}}
    proxy = start_proxy(start_upstream(lambda _: [answer(said)]).base_url)
    for text in ("2+2?", "and 3+3?"):
        _send(proxy, RESPONSES.path, {"model": "m", "input": text, "conversation": "conv_1"})
    first, second = proxy.recorded()
    assert (second.trajectory, second.parent) == (first.trajectory, first.id)


def test_the_result_of_a_tool_links_a_response(proxy: RunningProxy) -> None:
    call = _send(proxy, RESPONSES.path, {"model": "m", "input": "2+2?", "tools": TOOLS}).json["output"][-1]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "4"}
    _send(proxy, RESPONSES.path, {"model": "m", "input": [{"role": "user", "content": "shortened"}, call, result]})
    first, second = proxy.recorded()
    assert second.parent == first.id


def test_the_result_of_a_tool_links_a_message(proxy: RunningProxy) -> None:
    call = _send(proxy, MESSAGES.path, {**MESSAGES.first, "tools": TOOLS}).json["content"][-1]
    turns = [
        {"role": "user", "content": "shortened"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "4"}]},
    ]
    _send(proxy, MESSAGES.path, {"model": "m", "messages": turns})
    first, second = proxy.recorded()
    assert second.parent == first.id


@every_conversation
def test_an_echo_of_our_block_neither_breaks_the_chain_nor_comes_twice(
    proxy: RunningProxy, upstream: RawUpstream, api: Api
) -> None:
    answered = _send(proxy, api.path, api.first)
    echoing = api.then(json.loads(upstream.seen[0].body), answered.json)
    _send(proxy, api.path, echoing)
    assert api.prior(upstream.seen[1].json) == BLOCK
    first, second = proxy.recorded()
    assert second.parent == first.id


@every_api
def test_like_requests_are_one_group(proxy: RunningProxy, api: Api) -> None:
    for _ in range(2):
        _send(proxy, api.path, api.first)
    first, second = proxy.recorded()
    assert first.group == second.group
    assert first.trajectory != second.trajectory


@every_api
def test_an_answer_is_labelled_by_its_own_id(proxy: RunningProxy, api: Api) -> None:
    named = {"completion_id": _send(proxy, api.path, api.first).json["id"], "value": True}
    labelled = _send(proxy, "/v1/feedback", named)
    assert (labelled.status, labelled.json["status"]) == (200, "stored")


@every_api
@streaming_or_not
def test_the_answer_is_relayed_byte_for_byte(
    start_proxy: StartProxy, start_upstream: StartUpstream, api: Api, stream: bool
) -> None:
    whole = b': hi\r\n\r\nevent: x\r\ndata:{"a":\r\ndata: 1e400}\r\n\r\n' if stream else b'{ "id" :1e400, "id":[] }'
    kind = "text/event-stream" if stream else "application/json"
    pieces = [whole[at : at + 1] for at in range(len(whole))]
    upstream = start_upstream(lambda _: [chunked_head(kind), *map(chunk, pieces), chunk(b"")])
    assert _send(start_proxy(upstream.base_url), api.path, {**api.first, "stream": stream}).body == whole


@every_conversation
def test_the_control_arm_gets_nothing_on_any_turn(proxy: RunningProxy, upstream: RawUpstream, api: Api) -> None:
    proxy.deploy("math", LESSON, shares={"control": 1.0})
    sent = json.dumps(api.first).encode()
    answered = _send(proxy, api.path, sent)
    again = _send(proxy, api.path, api.then(api.first, answered.json))
    assert upstream.seen[0].body == sent
    assert [one.headers["x-tfgrpo-arm"] for one in (answered, again)] == ["control", "control"]
    assert "tfgrpo" not in upstream.seen[1].body.decode()


@every_api
def test_a_repeated_request_is_no_new_trajectory(
    start_proxy: StartProxy, start_upstream: StartUpstream, api: Api
) -> None:
    upstream = start_upstream(lambda _: [answer({"error": {"message": "busy"}}, status=503)])
    proxy = start_proxy(upstream.base_url)
    _send(proxy, api.path, api.first)
    _send(proxy, api.path, api.first, x_stainless_retry_count="1")
    first, second = proxy.recorded()
    assert (second.trajectory, second.retry) == (first.trajectory, True)


@every_api
def test_an_upstream_that_is_down_is_a_502_in_the_envelope_of_the_api(start_proxy: StartProxy, api: Api) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    answered = _send(start_proxy(f"http://127.0.0.1:{port}/v1"), api.path, api.first)
    said, exchange = answered.json, answered.headers["x-tfgrpo-exchange"]
    assert (answered.status, said["error"]["type"]) == (502, "proxy_error")
    if api is MESSAGES:
        assert (said["type"], said["request_id"]) == ("error", exchange)
    else:
        assert (said["error"]["code"], said["error"]["exchange_id"]) == ("upstream_unreachable", exchange)


@every_api
def test_a_stream_that_breaks_off_ends_in_a_break_and_is_no_answer(
    start_proxy: StartProxy, start_upstream: StartUpstream, api: Api
) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(b'data: {"type":"ping"}\n\n'), "reset"])
    proxy = start_proxy(upstream.base_url)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        _send(proxy, api.path, {**api.first, "stream": True})
    assert [one.outcome for one in proxy.recorded()] == ["broken"]


@every_api
def test_an_error_inside_a_stream_is_no_answer(
    start_proxy: StartProxy, start_upstream: StartUpstream, api: Api
) -> None:
    said = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"queue full"}}\n\n'
    upstream = start_upstream(lambda _: [chunked_head(), chunk(said), chunk(b"data: [DONE]\n\n"), chunk(b"")])
    proxy = start_proxy(upstream.base_url)
    assert _send(proxy, api.path, {**api.first, "stream": True}).body == said + b"data: [DONE]\n\n"
    assert [one.outcome for one in proxy.recorded()] == ["broken"]


def test_anthropics_headers_and_key_cross_as_they_are(proxy: RunningProxy, upstream: RawUpstream) -> None:
    sent = {"x-api-key": "sk-ant", "anthropic-version": "2023-06-01", "anthropic-beta": "a,b"}
    proxy.request("POST", "/v1/messages?beta=true", MESSAGES.first, {**MATH, **sent})
    seen = upstream.wait_seen()
    assert seen.target == "/v1/messages?beta=true"
    assert {name: seen.headers[name] for name in sent} == sent
    assert "authorization" not in seen.headers


@every_api
def test_a_base_path_may_name_the_upstream_the_set_and_the_session(
    proxy: RunningProxy, upstream: RawUpstream, api: Api
) -> None:
    path = f"/set/math/session/s-1/up{api.path}"
    answered = proxy.request("POST", path, api.first, {"authorization": "Bearer sk-client"})
    assert BLOCK in api.prior(upstream.wait_seen().json)
    assert answered.headers["x-tfgrpo-trajectory"] == "s-1"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/responses/resp_1"), ("POST", "/v1/responses/resp_1/cancel"), ("POST", "/v1/messages/batches")],
)
def test_what_lies_below_an_api_is_relayed_unread(
    proxy: RunningProxy, upstream: RawUpstream, method: str, path: str
) -> None:
    body = b'{"input":"a","messages":[]}' if method == "POST" else b""
    proxy.request(method, path, body or None, MATH)
    assert upstream.wait_seen().body == body
    (one,) = proxy.recorded()
    assert (one.dialect, one.version) == (None, 0)


def test_several_prompts_are_injected_each(proxy: RunningProxy, upstream: RawUpstream) -> None:
    _send(proxy, "/v1/completions", {"model": "m", "prompt": ["A", "B"]})
    assert upstream.wait_seen().json["prompt"] == [f"{BLOCK}\n\nA", f"{BLOCK}\n\nB"]


def test_a_prompt_of_tokens_is_left_alone_and_outside_every_experiment(
    proxy: RunningProxy, upstream: RawUpstream
) -> None:
    sent = b'{"model":"m","prompt":[1,2,3]}'
    answered = _send(proxy, "/v1/completions", sent)
    assert upstream.wait_seen().body == sent
    assert (answered.headers["x-tfgrpo-set"], answered.headers["x-tfgrpo-arm"]) == ("none", "none")
