"""The official SDKs return, and upstreams receive, the same direct and through the proxy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartProxy, StartUpstream
from tests.proxy.apis import Body
from tests.tfgrpo.dialects.events import message_events, response_events, stream
from tests.upstreams import Seen, Step, answer, chunk, chunked_head, completion, event, streamed

ROOT = Path(__file__).parent.parent.parent
OLD = ROOT / ".venv" / "openai-1"
"""Where `make setup` puts OpenAI's SDK 1.x."""

_TEXT = {"type": "output_text", "text": "hello there", "annotations": []}
_RESPONSE: Body = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [_TEXT]}],
}
_MESSAGE: Body = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "hello \U0001f600"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
_MODEL = {"id": "org/name", "object": "model", "type": "model", "created": 1, "owned_by": "o", "display_name": "N"}
_PAGE = {"object": "list", "data": [_MODEL], "has_more": False, "first_id": "org/name", "last_id": "org/name"}
_OTHERS: dict[str, Any] = {
    "/v1/completions": {"id": "cmpl-1", "choices": [{"index": 0, "text": "x", "finish_reason": "stop"}]},
    "/v1/embeddings": {"object": "list", "data": [{"index": 0, "embedding": [0.1, 1e-9]}], "model": "m"},
    "/v1/models": _PAGE,
    "/v1/models/org%2Fname": _MODEL,
    "/v1/audio/transcriptions": {"text": "heard"},
    "/v1/images/generations": {"created": 1, "data": [{"b64_json": "aGk="}]},
    "/v1/messages/count_tokens": {"input_tokens": 7},
}
_RETRY = [("retry-after", "30"), ("x-request-id", "req-1"), ("request-id", "req-1"), ("x-ratelimit-limit", "9")]


def api(seen: Seen) -> Iterator[Step]:
    """An upstream that has an answer to each call, always the same."""
    path = seen.target.split("?")[0]
    if path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
        yield from _turn(path, seen.json)
    elif path.endswith("/content"):
        yield answer(b"\x00\xff\r\n", content_type="application/octet-stream")
    else:
        yield answer(_OTHERS.get(path, {**_RESPONSE, "id": path}), headers=[("x-request-id", "req-1")])


def _turn(path: str, asked: Body) -> Iterator[Step]:
    model = asked.get("model", "")
    if model.removeprefix("error-").isdigit():
        said = {"type": "error", "error": {"type": "e", "message": model, "code": 7}}
        yield answer(said, status=int(model[6:]), headers=_RETRY)
    elif model == "broken":
        yield from (chunked_head(), chunk(stream(*message_events(_MESSAGE)[:3])), "close")
    elif model == "error-event":
        yield from (chunked_head(), chunk(event({"error": {"message": "queue full"}})), chunk(b""))
    elif not asked.get("stream"):
        whole = {"/v1/messages": _MESSAGE, "/v1/responses": _RESPONSE}.get(path)
        yield answer(whole or completion(n=asked.get("n", 1)), headers=_RETRY)
    elif path == "/v1/chat/completions":
        yield from streamed("hello there", n=asked.get("n", 1))
    else:
        events = message_events(_MESSAGE) if path == "/v1/messages" else response_events(_RESPONSE)
        yield from (chunked_head(), chunk(stream(*events)), chunk(b""))


def run(sdk: str, port: int, folder: Path | None) -> dict[str, Any]:
    paths = [str(folder)] if folder is not None else []
    done = subprocess.run(  # noqa: S603 - a program of this test suite
        [sys.executable, "-m", "tests.sdk_calls", sdk, f"http://127.0.0.1:{port}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, str(ROOT)])},
        capture_output=True,
        check=True,
        timeout=60,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize(
    ("sdk", "folder"),
    [("openai", None), ("openai", OLD), ("anthropic", None)],
    ids=["openai", "openai 1.x", "anthropic"],
)
def test_an_sdk_returns_the_same_with_and_without_the_proxy(
    start_proxy: StartProxy, start_upstream: StartUpstream, sdk: str, folder: Path | None
) -> None:
    upstream = start_upstream(api)
    direct = run(sdk, upstream.port, folder)
    before = len(upstream.seen)
    through = run(sdk, start_proxy(upstream.base_url).port, folder)
    assert through == direct
    sent = [(one.line, one.body) for one in upstream.seen if "multipart" not in one.headers.get("content-type", "")]
    half = len(sent) // 2
    assert (len(upstream.seen), sent[half:]) == (2 * before, sent[:half])
    is_old = upstream.seen[0].headers["x-stainless-package-version"].startswith("1.")
    assert is_old == (folder is OLD)
