"""One line of JSON for each exchange on standard error: who, what, how long. No key, no query, no content.

It is written when an exchange is over and is not waited for by a client.
"""

from __future__ import annotations

import json
import sys
from typing import TextIO

from proxy.calls import Given
from proxy.transcript import Transcript
from tfgrpo.types import Exchange


class AccessLog:
    """Writes the lines."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stderr if out is None else out

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
        self._out.write(f"{json.dumps(line)}\n")
        self._out.flush()
