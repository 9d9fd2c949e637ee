"""The server as a client sees it: the official SDK and raw requests against uvicorn on a real socket."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from socket import create_server
from typing import Any

import openai
import pytest
import uvicorn

from tfgrpo.errors import UsageError
from tfgrpo.simulation.provider import Provider
from tfgrpo.simulation.server import create, serve
from tfgrpo.simulation.world import World

QUESTION = World.draw(1).tasks(1, split="train")[0]["question"]


class Running(uvicorn.Server):
    """A server in a thread that says when it listens."""

    def __init__(self) -> None:
        super().__init__(uvicorn.Config(create(1), log_level="warning", access_log=False))
        self.listening = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        self.listening.set()


@pytest.fixture
def port() -> Iterator[int]:
    """A server of its own for each test: its answers depend on how often it was asked."""
    listener = create_server(("127.0.0.1", 0))
    server = Running()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    assert server.listening.wait(10)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(10)
    assert not thread.is_alive()
    listener.close()


@pytest.fixture
def client(port: int) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="any", max_retries=0) as client:
        yield client


def call(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body)
    response = connection.getresponse()
    raw = response.read()
    connection.close()
    return response.status, json.loads(raw)


def ask(client: openai.OpenAI, **members: Any) -> Any:
    request = {"model": "sim-policy", "messages": [{"role": "user", "content": QUESTION}], **members}
    return client.chat.completions.create(**request)


def test_both_models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["sim-policy", "sim-optimizer"]


def test_a_model_is_described(client: openai.OpenAI) -> None:
    assert client.models.retrieve("sim-policy").id == "sim-policy"


def test_a_completion_has_text_usage_and_an_id(client: openai.OpenAI) -> None:
    answer = ask(client)
    assert "Answer: " in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer.id.startswith("chatcmpl-sim-")


def test_n_gives_as_many_choices(client: openai.OpenAI) -> None:
    assert [choice.index for choice in ask(client, n=3).choices] == [0, 1, 2]


def test_a_stream_says_what_is_said_without_streaming(client: openai.OpenAI) -> None:
    request: dict[str, Any] = {
        "model": "sim-optimizer",
        "messages": [
            {"role": "system", "content": "Stage: summarise"},
            {"role": "user", "content": "<rollout>\nI restated the units. I did not list the options.\n</rollout>"},
        ],
    }
    chunks = ask(client, stream=True, **request)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert streamed == ask(client, **request).choices[0].message.content


def test_the_policys_first_answer_is_the_same_streamed(client: openai.OpenAI) -> None:
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in ask(client, stream=True))
    request = {"model": "sim-policy", "messages": [{"role": "user", "content": QUESTION}]}
    assert streamed == Provider(1).answer(json.dumps(request).encode()).texts[0]


def test_a_stream_comes_in_pieces_of_a_few_words_and_ends_with_a_reason(client: openai.OpenAI) -> None:
    chunks = list(ask(client, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert max(len((chunk.choices[0].delta.content or "").split()) for chunk in chunks) <= 3
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_stream_tells_its_usage_only_when_asked(client: openai.OpenAI) -> None:
    assert not [chunk for chunk in ask(client, stream=True) if chunk.usage]
    *_, last = ask(client, stream=True, stream_options={"include_usage": True})
    assert last.choices == []
    assert last.usage.completion_tokens > 0


def test_a_stream_of_several_choices_holds_each_whole(client: openai.OpenAI) -> None:
    texts: dict[int, str] = {}
    for chunk in ask(client, stream=True, n=2):
        (choice,) = chunk.choices
        texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
    assert sorted(texts) == [0, 1]
    assert all("Answer: " in text for text in texts.values())


def test_an_unknown_model_is_the_sdks_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}])
    assert error.value.code == "model_not_found"


def test_malformed_json_is_a_400_in_the_envelope(port: int) -> None:
    status, answer = call(port, "POST", "/v1/chat/completions", b"{")
    assert status == 400
    assert set(answer["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/v1/embeddings", 404),
        ("GET", "/v1/models/none", 404),
        ("GET", "/v1/chat/completions", 405),
    ],
)
def test_other_paths_are_errors_in_the_envelope(port: int, method: str, path: str, status: int) -> None:
    answered, body = call(port, method, path)
    assert answered == status
    assert body["error"]["type"] == "invalid_request_error"


def test_a_lone_surrogate_in_a_lesson_comes_back_as_json(port: int) -> None:
    request = (
        b'{"model": "sim-optimizer", "messages": [{"role": "system", "content": "Stage: propose"},'
        rb' {"role": "user", "content": "<lessons>\n- \ud800 x\n</lessons>"}]}'
    )
    assert call(port, "POST", "/v1/chat/completions", request)[0] == 200


def test_a_taken_port_is_an_error_that_says_so() -> None:
    with create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="--port"):
        serve("127.0.0.1", taken.getsockname()[1], seed=1)


def test_serving_prints_one_line_with_its_url_and_models() -> None:
    code = "from tfgrpo.simulation.server import serve; serve('127.0.0.1', 0, seed=1)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as served:  # noqa: S603 - our own code
        assert served.stdout is not None
        line = served.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/v1", line)
        assert found, line
        assert call(int(found.group(1)), "GET", "/v1/models")[0] == 200
        served.terminate()
        rest, _ = served.communicate(timeout=10)
    assert ("sim-policy" in line, "sim-optimizer" in line, rest) == (True, True, "")
