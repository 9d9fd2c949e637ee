"""One line of JSON for each exchange on standard error: who, what, how long. No key, no query, no content.

It is written when an exchange is over, by a thread of its own (`standard_error`): nobody waits for it.
"""

from __future__ import annotations

import json

from proxy.calls import Given
from proxy.standard_error import Lines
from proxy.transcript import Transcript
from tfgrpo.types import Exchange


class AccessLog:
    """Has the lines written."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __call__(self, exchange: Exchange, given: Given, transcript: Transcript) -> None:
        """Write the line of one exchange. The path is without its query, which may hold anything."""
        first, sending = exchange.first_byte_at, transcript.sending_at
        line = {
            "time": round(exchange.started_at, 3),
            "exchange": exchange.id,
            "app": exchange.app,
            "method": exchange.method,
            "path": exchange.path.partition("?")[0],
            "status": exchange.status,
            "outcome": exchange.outcome,
            "upstream": exchange.upstream,
            "model": exchange.model,
            "set": given.injected,
            "arm": exchange.arm,
            "seconds": round(exchange.ended_at - exchange.started_at, 6),
            "first_byte_seconds": None if first is None else round(first - exchange.started_at, 6),
            "added_seconds": None if sending is None else round(sending - exchange.started_at, 6),
            "request_bytes": transcript.request.size,
            "response_bytes": transcript.response.size,
        }
        self._lines.put(json.dumps(line))
