"""Lessons are the same text in the same place whether they are trained on, evaluated or served."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy import injection
from tfgrpo import library, rollouts
from tfgrpo.dialects.chat import Chat

BLOCK = library.render(
    library.from_texts(["Check the units.", 'Say "no" \N{LATIN SMALL LETTER E WITH ACUTE}.']), name="m", version=3
)


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "a"}],
        [{"role": "system", "content": "be good"}, {"role": "user", "content": "a"}],
        [{"role": "system", "content": ""}, {"role": "user", "content": "a"}],
        [{"role": "developer", "content": "be good\n"}, {"role": "user", "content": "a"}],
    ],
)
@pytest.mark.parametrize("block", [BLOCK, ""])
def test_a_fresh_rollout_is_asked_what_a_live_request_is_asked(messages: list[dict[str, Any]], block: str) -> None:
    body = json.dumps({"model": "m", "messages": messages}).encode()
    live = injection.inject(body, "chat", block)
    request = Chat().read_request(body)
    assert live is not None
    assert request is not None
    assert json.loads(live)["messages"] == rollouts.inject(request.messages, block)
