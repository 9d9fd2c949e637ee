"""Traffic for tests of pages, written straight into a proxy's store: what no well-behaved client sends."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from tests.conftest import RunningProxy
from tfgrpo.store import Batch, Store
from tfgrpo.types import Assignment, Bodies, Exchange

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \"quoted\" & 'more'"


def asked(*texts: str, **more: Any) -> bytes:
    """A chat request: a user's text, an answer, a user's text and so on."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def said(text: str) -> bytes:
    """A chat completion."""
    message = {"role": "assistant", "content": text}
    return json.dumps({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


def record(proxy: RunningProxy, *turns: tuple[bytes, bytes], trajectory: str = "t", **changes: Any) -> list[str]:
    """Record a trajectory of these requests and answers; return the ids of its exchanges."""
    started = changes.pop("started_at", 1_000.0)
    encodings = {name: changes.pop(name, "") for name in ("request_encoding", "response_encoding")}
    response_type = changes.pop("response_type", "application/json")
    exchanges = []
    for at, (request, response) in enumerate(turns):
        one = Exchange(
            f"ex-{trajectory}-{at}", "default", None, 0, "none", trajectory, "g", "chat", "POST",
            "/v1/chat/completions", "m", "up", "", "complete", 200, started + at, started + at + 0.25,
            started + at + 1.5, parent=f"ex-{trajectory}-{at - 1}" if at else None,
        )  # fmt: skip
        bodies = Bodies(request, response, response_type=response_type, **encodings)
        exchanges.append((replace(one, **changes), bodies))
    first = exchanges[0][0]
    given = Assignment(
        trajectory, first.app, first.set, first.version, first.arm, None, 0, "g", first.model, first.started_at
    )
    with closing(Store.open(proxy.settings.store.url)) as store:
        store.traffic.add(Batch(tuple(exchanges), (given,)))
    return [one.id for one, _ in exchanges]
