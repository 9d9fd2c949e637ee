"""OpenTelemetry's GenAI names for what an exchange is. Pure; what is told of it stands in `metrics` and `traces`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proxy.calls import Given
from proxy.transcript import Transcript

OPERATIONS: Final[Mapping[str, str]] = {
    "chat": "chat",
    "responses": "chat",
    "messages": "chat",
    "completions": "text_completion",
}
"""`gen_ai.operation.name` by the API that was called."""

BYTES_A_TOKEN: Final = 4
"""How many tokens a block has is the provider's to say; four bytes to one is the usual guess for English."""


def injected_tokens(given: Given, transcript: Transcript) -> float:
    """How many tokens were added to a request, roughly."""
    if given.injected == "none" or given.body is None:
        return 0.0
    return max(0, len(given.body) - transcript.request.size) / BYTES_A_TOKEN
