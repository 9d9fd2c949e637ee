"""One proxy for all of them: it loads litellm, which takes seconds."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.__main__ import main
from proxy.litellm_upstream import LitellmUpstream
from proxy.routing import Translated, Upstream
from proxy.settings import Settings
from tests.anthropic import messages
from tests.conftest import Answered, RunningProxy
from tests.raw_client import posted, read_until
from tests.upstreams import RawUpstream, Seen, answer

# Of litellm's own types, said at their first use.
pytestmark = pytest.mark.filterwarnings("ignore:Item '")

ROOT = Path(__file__).parent.parent.parent
KEY = "sk-canary-1"
CLIENTS_OWN = {"authorization": "Bearer sk-client"}


def ollama(seen: Seen) -> list[bytes]:
    if seen.target == "/api/embed":
        return [answer({"model": "m", "embeddings": [[1.0, 2.0]], "prompt_eval_count": 3})]
    message = {"role": "assistant", "content": json.dumps(seen.json.get("messages", []))}
    return [answer({"model": "m", "message": message, "done": True, "done_reason": "stop", "eval_count": 2})]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def anthropic() -> Iterator[RawUpstream]:
    with RawUpstream(messages) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def local() -> Iterator[RawUpstream]:
    with RawUpstream(ollama) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def proxy(
    tmp_path_factory: pytest.TempPathFactory, anthropic: RawUpstream, local: RawUpstream
) -> Iterator[RunningProxy]:
    def translated(name: str, provider: str, port: int, **more: Any) -> dict[str, Any]:
        way = {"provider": "litellm", "custom_llm_provider": provider, "base_url": f"http://127.0.0.1:{port}"}
        return {"name": name, "models": [], **way, **more}

    behind = f"http://127.0.0.1:{anthropic.port}"
    values = {
        "server": {"port": 0, "drain_seconds": 5},
        "store": {"url": f"sqlite:///{tmp_path_factory.mktemp('litellm') / 'store.db'}"},
        "timeouts": {"first_byte": 2, "idle": 2},
        "upstreams": [
            translated("claude", "anthropic", anthropic.port, models=["*"], api_key=KEY),
            translated("own", "anthropic", anthropic.port),
            translated("sdk", "openai", anthropic.port),
            translated("down", "anthropic", free_port()),
            translated("local", "ollama_chat", local.port, credentials="environment"),
            translated("vectors", "ollama", local.port, credentials="environment"),
        ],
        "model_list": [
            {"model_name": "fast", "litellm_params": {"model": "anthropic/c-1", "api_base": behind, "api_key": KEY}}
        ],
        "routes": [{"set": "math", "models": ["c-math"]}],
    }
    running = RunningProxy(Settings.model_validate(values))
    asyncio.run(LitellmUpstream(Settings(), {}).load([]))  # on busy cores litellm takes longer than a start may
    running.start()
    yield running
    running.stop()


def sent(upstream: RawUpstream) -> Any:
    return upstream.seen[-1].json


def asking(proxy: RunningProxy, prefix: str = "", **body: Any) -> Answered:
    return proxy.chat("hi", prefix=prefix, **{"model": "c-1", **body})


def events(answered: Answered) -> list[str]:
    assert answered.headers["content-type"] == "text/event-stream"
    return [line.removeprefix("data: ") for line in answered.body.decode().split("\n\n") if line]


def text_of(answered: Answered) -> str:
    *chunks, end = events(answered)
    assert end == "[DONE]"
    found = [json.loads(one)["choices"] for one in chunks]
    return "".join(choices[0]["delta"].get("content") or "" for choices in found if choices)


def test_a_chat_is_translated_there_and_back(proxy: RunningProxy, anthropic: RawUpstream) -> None:
    answered = asking(
        proxy, max_tokens=9, messages=[{"role": "system", "content": "S"}, {"role": "user", "content": "hi"}]
    )
    assert (answered.status, answered.json["choices"][0]["message"]["content"]) == (200, "S")
    assert answered.json["usage"]["total_tokens"] == 5
    assert (anthropic.seen[-1].target, sent(anthropic)["max_tokens"]) == ("/v1/messages", 9)
    assert anthropic.seen[-1].headers["x-api-key"] == KEY
    assert "sk-client" not in anthropic.seen[-1].head.decode()


def test_a_tool_call_is_translated(proxy: RunningProxy) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    choice = asking(proxy, tools=[tool]).json["choices"][0]
    called = choice["message"]["tool_calls"][0]
    assert (choice["finish_reason"], called["id"], called["function"]["name"]) == ("tool_calls", "toolu_1", "look")
    assert json.loads(called["function"]["arguments"]) == {"at": "x"}


def test_a_stream_is_framed_as_openai_frames_it(proxy: RunningProxy) -> None:
    answered = asking(proxy, stream=True)
    assert text_of(answered) == "one "
    assert not any(json.loads(one).get("usage") for one in events(answered)[:-1])


def test_the_usage_of_a_stream_comes_when_it_is_asked_for(proxy: RunningProxy) -> None:
    last = json.loads(events(asking(proxy, stream=True, stream_options={"include_usage": True}))[-2])
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 2)


@pytest.mark.parametrize("stream", [False, True])
def test_lessons_arrive_as_the_providers_system_text(proxy: RunningProxy, anthropic: RawUpstream, stream: bool) -> None:
    proxy.deploy("math", "Count twice.")
    answered = asking(proxy, model="c-math", stream=stream)
    assert answered.headers["x-tfgrpo-set"].startswith("math@")
    assert "Count twice." in json.dumps(sent(anthropic)["system"])
    assert "Count twice." in answered.body.decode()


def test_an_alias_of_the_model_list_is_the_providers_model(proxy: RunningProxy, anthropic: RawUpstream) -> None:
    assert asking(proxy, model="fast").status == 200
    assert sent(anthropic)["model"] == "c-1"


def test_no_name_of_a_model_reaches_another_provider(proxy: RunningProxy, anthropic: RawUpstream) -> None:
    assert asking(proxy, model="openai/gpt").status == 200
    assert sent(anthropic)["model"] == "openai/gpt"
    assert asking(proxy, model="azure/command-r-plus").status == 200
    assert sent(anthropic)["model"] == "azure/command-r-plus"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [401, 429, 529])
def test_a_refusal_keeps_its_status_and_what_it_said(proxy: RunningProxy, stream: bool, status: int) -> None:
    before = time.monotonic()
    answered = asking(proxy, model=str(status), stream=stream)
    assert (answered.status, answered.headers["retry-after"], answered.headers["request-id"]) == (status, "7", "req_1")
    error = answered.json["error"]
    assert (error["type"], error["message"].replace(KEY, "")) == ("said_error", "no, [api_key]")
    assert KEY not in answered.body.decode()
    assert "x-own" not in answered.headers
    assert time.monotonic() - before < 1.5, "it was tried again"


@pytest.mark.parametrize("prefix", ["/claude", "/sdk"])
def test_a_refusal_is_not_tried_again(proxy: RunningProxy, anthropic: RawUpstream, prefix: str) -> None:
    before = len(anthropic.seen)
    assert asking(proxy, prefix, model="503").status == 503
    assert len(anthropic.seen) == before + 1


def test_an_upstream_that_is_down_is_a_502(proxy: RunningProxy) -> None:
    answered = asking(proxy, "/down")
    assert (answered.status, answered.json["error"]["code"]) == (502, "upstream_unreachable")
    assert "127.0.0.1" not in answered.body.decode()


@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_is_silent_is_a_504(proxy: RunningProxy, stream: bool) -> None:
    answered = asking(proxy, model="hold", stream=stream)
    assert (answered.status, answered.json["error"]["code"]) == (504, "upstream_timeout")


def test_an_error_in_place_of_the_first_event_has_a_status(proxy: RunningProxy) -> None:
    answered = asking(proxy, model="refuse-first", stream=True)
    assert (answered.status, answered.json["error"]["code"]) == (502, "litellm_failed")
    assert "too busy" in answered.json["error"]["message"]


@pytest.mark.parametrize("model", ["cut-late", "refuse-late", "hold-late"])
def test_a_stream_that_breaks_off_never_ends(proxy: RunningProxy, model: str) -> None:
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with posted(proxy.port, json.dumps(body).encode()) as line:
        got = read_until(line, b"one ")
        while piece := line.recv(65536):
            got += piece
    assert got.startswith(b"HTTP/1.1 200")
    assert b"[DONE]" not in got
    assert not got.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(("model", "stream", "awaited"), [("hold", False, None), ("hold-late", True, b"one ")])
def test_a_client_that_leaves_cancels_the_call_within_a_second(
    proxy: RunningProxy, anthropic: RawUpstream, model: str, stream: bool, awaited: bytes | None
) -> None:
    anthropic.closed_at.clear()
    before = len(anthropic.seen)
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    line = posted(proxy.port, json.dumps(body).encode())
    anthropic.wait_seen(before + 1)
    if awaited is not None:
        read_until(line, awaited)
    left = time.monotonic()
    line.close()
    assert anthropic.wait_closed() - left < 1


@pytest.mark.parametrize(
    "name",
    """
    api_base base_url api_key mock_response custom_llm_provider extra_headers extra_body fallbacks num_retries
    max_retries model_list timeout metadata_ drop_params api_version organization deployment_id litellm_params
    litellm_metadata callbacks cache guardrails prompt_id aws_region_name vertex_credentials ssl_verify
    _skip_mcp_handler
    """.split(),  # noqa: SIM905 - names read best as text
)
def test_a_field_that_the_api_does_not_define_is_refused(
    proxy: RunningProxy, anthropic: RawUpstream, name: str
) -> None:
    before = len(anthropic.seen)
    answered = asking(proxy, **{name: "http://127.0.0.1:9"})
    assert (answered.status, answered.json["error"]["param"]) == (400, name)
    assert len(anthropic.seen) == before


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"[]", None),
        (b'{"model":"c","messages":[{"role":"user","content":"x"}],"temperature":1e400}', None),
        (b'{"model":"c","messages":[{"role":"user","content":"\\ud83d"}]}', "messages[0].content"),
        (b"[" * 100_000, None),
        (b'{"messages":[]}', "model"),
        (b'{"model":"c"}', "messages"),
        (b'{"model":"c","messages":"hi"}', "messages"),
        (b'{"model":"a/../../b?x=#","messages":[]}', "model"),
        (b'{"model":"c","messages":[],"stream":"yes"}', "stream"),
        (b'{"model":"c","messages":[],"metadata":{"model_group":{}}}', "metadata"),
        (b'{"model":"c","messages":[],"tools":[{"type":"mcp","server_url":"litellm_proxy"}]}', "tools"),
    ],
)
def test_a_body_that_cannot_be_translated_is_a_400(proxy: RunningProxy, body: bytes, param: str | None) -> None:
    answered = proxy.request("POST", "/claude/v1/chat/completions", body, {"content-type": "application/json"})
    assert (answered.status, answered.json["error"]["param"]) == (400, param)


def test_a_parameter_that_the_provider_has_not_is_refused_and_not_dropped(proxy: RunningProxy) -> None:
    answered = asking(proxy, seed=3)
    assert (answered.status, answered.json["error"]["code"]) == (400, "litellm_refused")
    assert "seed" in answered.json["error"]["message"]


def test_without_a_key_of_ours_the_clients_own_is_used(proxy: RunningProxy, anthropic: RawUpstream) -> None:
    assert asking(proxy, "/own").status == 200
    assert anthropic.seen[-1].headers["x-api-key"] == "sk-client"


def test_without_any_key_nothing_of_the_environment_is_used(
    proxy: RunningProxy, anthropic: RawUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-operator")
    before = len(anthropic.seen)
    body = {"model": "c-1", "messages": [{"role": "user", "content": "hi"}]}
    answered = proxy.request("POST", "/own/v1/chat/completions", body, {"content-type": "application/json"})
    assert (answered.status, len(anthropic.seen)) == (401, before)


def test_credentials_of_the_environment_keep_the_clients_key_here(proxy: RunningProxy, local: RawUpstream) -> None:
    answered = asking(proxy, "/local", model="m")
    assert "hi" in answered.json["choices"][0]["message"]["content"]
    assert not any("sk-client" in seen.head.decode() for seen in local.seen)


def test_embeddings_are_carried(proxy: RunningProxy) -> None:
    headers = {"content-type": "application/json", **CLIENTS_OWN}
    answered = proxy.request("POST", "/vectors/v1/embeddings", {"model": "m", "input": ["hi"]}, headers)
    assert (answered.status, answered.json["data"][0]["embedding"]) == (200, [1.0, 2.0])


def test_completions_are_carried(proxy: RunningProxy) -> None:
    headers = {"content-type": "application/json", **CLIENTS_OWN}
    answered = proxy.request("POST", "/local/v1/completions", {"model": "m", "prompt": "hi"}, headers)
    assert (answered.status, answered.json["object"]) == (200, "text_completion")


@pytest.mark.parametrize("stream", [False, True])
def test_responses_are_carried(proxy: RunningProxy, anthropic: RawUpstream, stream: bool) -> None:
    headers = {"content-type": "application/json", **CLIENTS_OWN}
    body = {"model": "c-1", "input": "hi", "instructions": "S", "stream": stream}
    answered = proxy.request("POST", "/v1/responses", body, headers)
    assert (answered.status, "S" in json.dumps(sent(anthropic)["system"])) == (200, True)
    if stream:
        assert b"event: response.completed\ndata: {" in answered.body
        assert b"[DONE]" not in answered.body
    else:
        assert answered.json["output"][0]["content"][0]["text"] == "S"


def test_a_response_that_the_provider_cannot_know_is_refused(proxy: RunningProxy) -> None:
    body = {"model": "c-1", "input": "hi", "previous_response_id": "resp_1"}
    answered = proxy.request("POST", "/v1/responses", body, {"content-type": "application/json", **CLIENTS_OWN})
    assert (answered.status, answered.json["error"]["param"]) == (400, "previous_response_id")


def test_models_are_those_that_the_configuration_names(proxy: RunningProxy) -> None:
    listed = proxy.request("GET", "/v1/models").json
    assert listed["object"] == "list"
    assert listed["data"][0] == {"id": "fast", "object": "model", "created": 0, "owned_by": "anthropic"}
    assert proxy.request("GET", "/v1/models/fast").json == listed["data"][0]
    missing = proxy.request("GET", "/claude/v1/models/slow", None, CLIENTS_OWN)
    assert (missing.status, missing.json["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/claude/v1/models"), ("POST", "/v1/files"), ("GET", "/v1/responses/resp_1")]
)
def test_what_litellm_does_not_carry_says_what_is(proxy: RunningProxy, method: str, path: str) -> None:
    answered = proxy.request(method, path, None, CLIENTS_OWN)
    assert (answered.status, answered.json["error"]["code"]) == (404, "not_carried")
    assert "/chat/completions" in answered.json["error"]["message"]


def test_messages_are_refused_in_their_own_envelope(proxy: RunningProxy) -> None:
    body = {"model": "c-1", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    answered = proxy.request("POST", "/v1/messages", body, {"content-type": "application/json", **CLIENTS_OWN})
    assert (answered.status, answered.json["type"]) == (404, "error")


def test_a_conversation_is_one_trajectory(proxy: RunningProxy) -> None:
    asked = [{"role": "user", "content": "a question of its own"}]
    first = asking(proxy, messages=asked)
    turn = first.json["choices"][0]["message"]
    second = asking(proxy, messages=[*asked, {"role": "assistant", "content": turn["content"]}, asked[0]])
    assert second.headers["x-tfgrpo-trajectory"] == first.headers["x-tfgrpo-trajectory"]


async def test_an_answer_that_is_let_go_of_lets_go_of_its_connection(anthropic: RawUpstream) -> None:
    anthropic.closed_at.clear()
    upstream = LitellmUpstream(Settings(), {})
    await upstream.load(["anthropic"])
    body = b'{"model":"hold-late","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    to, way = Upstream("up", f"http://127.0.0.1:{anthropic.port}"), Translated("anthropic", {})
    answer = await upstream.send(to, way, KEY, ("POST", "/chat/completions"), body)
    assert b"one " in await answer.read()
    answer.close()
    await asyncio.to_thread(anthropic.wait_closed)
    await upstream.close()


def test_a_provider_that_litellm_does_not_know_is_found_by_the_check(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("upstreams: [{name: a, provider: litellm, custom_llm_provider: nobody}]")
    assert main(["--config", str(tmp_path / "c.yaml"), "--check-config"]) == 2


def test_a_proxy_without_such_an_upstream_never_loads_litellm(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.conftest import RunningProxy\n"
        "from proxy.settings import Settings\n"
        f"proxy = RunningProxy(Settings(store={{'url': 'sqlite:///{tmp_path}/s.db'}}, server={{'port': 0}},"
        " upstreams=[{'name': 'up', 'base_url': 'http://127.0.0.1:9'}]))\n"
        "proxy.start()\nassert proxy.chat().status == 502\nproxy.stop()\n"
        "print([name for name in ('litellm', 'httpx', 'openai') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert done.stdout.strip() == "[]"


def test_no_finalizer_of_a_stream_sets_context_variables(proxy: RunningProxy) -> None:
    assert asking(proxy).status == 200
    assert not hasattr(sys.modules["litellm"].CustomStreamWrapper, "__del__")


def test_what_went_through_is_recorded(proxy: RunningProxy) -> None:
    """The last one: it stops the proxy."""
    recorded = {(one.model, one.status): one.outcome for one in proxy.recorded()}
    assert recorded["c-1", 200] == "complete"
    assert recorded["cut-late", 200] == recorded["refuse-late", 200] == "broken"
