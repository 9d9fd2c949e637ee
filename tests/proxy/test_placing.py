from __future__ import annotations

import gzip
import json

import pytest

from tests.conftest import StartProxy, StartUpstream
from tests.raw_client import BODY, ODD_BODY
from tests.upstreams import answer, chat, completion


def test_a_deployed_library_is_injected_and_everything_else_kept(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(chat)
    proxy = start_proxy(upstream.base_url, routes=[{"set": "math"}])
    proxy.deploy("math", "Check the units.")
    answered = proxy.chat("hi")
    assert (answered.headers["x-tfgrpo-set"], answered.headers["x-tfgrpo-arm"]) == ("math@1", "live")
    assert "Check the units." in upstream.wait_seen().json["messages"][0]["content"]
    exchange = proxy.recorded()[0]
    assert (exchange.set, exchange.version, exchange.arm) == ("math", 1, "live")


def test_what_is_recorded_is_the_request_as_the_client_sent_it(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(chat)
    proxy = start_proxy(upstream.base_url, routes=[{"set": "math"}])
    proxy.deploy("math", "Check the units.")
    exchange_id = proxy.chat("hi").headers["x-tfgrpo-exchange"]
    shown = proxy.request("GET", f"/admin/api/exchanges/{exchange_id}")
    assert "Check the units." not in json.dumps(shown.json.get("request", ""))


@pytest.mark.parametrize(("asked", "said"), [("math@1", ("math@1", "pinned")), ("none", ("none", "none"))])
def test_a_request_may_ask_for_a_version_or_for_none(
    start_proxy: StartProxy, start_upstream: StartUpstream, asked: str, said: tuple[str, str]
) -> None:
    proxy = start_proxy(start_upstream(chat).base_url, routes=[{"set": "math"}])
    proxy.deploy("math", "Check the units.")
    proxy.deploy("math", "Check the sign.")
    headers = proxy.chat(headers={"x-tfgrpo-set": asked}).headers
    assert (headers["x-tfgrpo-set"], headers["x-tfgrpo-arm"]) == said


def test_a_version_that_does_not_exist_is_a_404(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(chat)
    answered = start_proxy(upstream.base_url).chat(headers={"x-tfgrpo-set": "math@7"})
    assert (answered.status, answered.json["error"]["code"], upstream.seen) == (404, "version_not_found", [])


def test_a_compressed_request_is_relayed_unchanged_and_in_no_arm(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [answer(completion())])
    proxy = start_proxy(upstream.base_url, routes=[{"set": "math"}])
    proxy.deploy("math", "Check the units.")
    packed = gzip.compress(BODY)
    answered = proxy.request("POST", "/v1/chat/completions", packed, {"content-encoding": "gzip"})
    assert (answered.headers["x-tfgrpo-arm"], upstream.wait_seen().body) == ("none", packed)


def test_turns_of_a_conversation_are_one_trajectory(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    proxy = start_proxy(start_upstream(lambda _: [answer(completion("four"))]).base_url)
    first = proxy.chat("two and two?").headers["x-tfgrpo-trajectory"]
    turns = [("user", "two and two?"), ("assistant", "four"), ("user", "sure?")]
    body = {"model": "m", "messages": [{"role": role, "content": text} for role, text in turns]}
    second = proxy.request("POST", "/v1/chat/completions", body, {"authorization": "Bearer sk-client"})
    assert second.headers["x-tfgrpo-trajectory"] == first


def test_an_alias_changes_the_model_and_nothing_else(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer(completion())])
    params = {"model": "openai/real", "api_base": upstream.base_url, "api_key": "sk-provider"}
    proxy = start_proxy(model_list=[{"model_name": "m", "litellm_params": params}])
    proxy.request("POST", "/v1/chat/completions", ODD_BODY, {"authorization": "Bearer sk-client"})
    seen = upstream.wait_seen()
    assert seen.body == ODD_BODY.replace(b'"model":"m"', b'"model":"real"')
    assert [value for name, value in seen.raw_headers if name == b"authorization"] == [b"Bearer sk-provider"]


def test_bypass_relays_and_records_nothing(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    proxy = start_proxy(start_upstream(chat).base_url, server={"bypass": True}, routes=[{"set": "math"}])
    proxy.deploy("math", "Check the units.")
    assert "Check the units." not in proxy.chat().body.decode()
    assert proxy.recorded() == []


def test_an_answer_too_large_to_keep_is_relayed_whole_and_marked(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    body = completion("x" * 3_000_000)
    proxy = start_proxy(start_upstream(lambda _: [answer(body)]).base_url, recorder={"body_bytes": 100_000})
    assert proxy.chat().json == body
    assert [one.truncated for one in proxy.recorded()] == [True]


def test_a_large_answer_is_read_aside_and_linked(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    proxy = start_proxy(start_upstream(lambda _: [answer(completion("x" * 600_000))]).base_url)
    proxy.chat()
    assert [(one.completion_id, one.outcome) for one in proxy.recorded()] == [("chatcmpl-1", "complete")]
