"""Whether a provider refuses because the account behind the key has no money left.

That comes under several statuses, 429 among them, and no waiting helps: it ends a run as a budget does, where a limit
on rates does not. What providers send is read here and nowhere else. It knows neither requests nor retries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

PAYMENT_REQUIRED: Final = 402

_STATUSES: Final = frozenset({None, 400, 401, 403, 429})
"""What such a refusal may come under beside 402; None where an error stands in a body with a good status."""
_CODES: Final = frozenset(
    {
        "insufficient_quota",  # OpenAI, with 429
        "billing_hard_limit_reached",  # OpenAI, with 400
        "billing_not_active",  # OpenAI, with 429
        "billing_error",  # Anthropic, with 400, 402 or 403
    }
)
_SAID: Final = re.compile(
    r"credit balance is too low"  # Anthropic
    r"|insufficient[_ ](?:quota|balance|credits)"
    # Gemini says the first half of this to a plain limit on rates too.
    r"|exceeded your current quota.*platform\.openai\.com",
    re.IGNORECASE | re.DOTALL,
)
_TELLING: Final = ("error", "code", "type", "message", "detail", "metadata", "raw")
"""The members that speak of the error; others may repeat what was asked."""
_DEPTH: Final = 6


def exhausted(status: int | None, body: bytes | str | object) -> bool:
    """Whether a refusal says that there is no money. `body` is what came, text or decoded. Never raises."""
    if status == PAYMENT_REQUIRED:
        return True
    if status not in _STATUSES:
        return False
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    return any(_says(one) for one in _leaves(_decoded(body), _DEPTH))


def _says(leaf: object) -> bool:
    if isinstance(leaf, str):
        return leaf in _CODES or _SAID.search(leaf) is not None
    return leaf == PAYMENT_REQUIRED  # OpenRouter has the status as the code, at times below a 200


def _leaves(body: Any, depth: int) -> Iterator[object]:
    """Yield what an error says, wherever it stands: some have it in a list, some as JSON inside a text."""
    if depth == 0:
        return
    match body:
        case dict():
            for name in _TELLING:
                yield from _leaves(_decoded(body.get(name)), depth - 1)
        case list():
            for one in body:
                yield from _leaves(one, depth - 1)
        case str() | int():
            yield body


def _decoded(value: object) -> object:
    """Return what a text holds as JSON: an object or a list; anything else as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
