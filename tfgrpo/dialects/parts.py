"""What a message's content says, for every API: texts as they are, a note for what is no text.

It knows the kinds of parts, not the messages around them. No value that JSON can hold makes it raise.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tfgrpo.dialects import json_reading as read

_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"})
"""Parts that are no part of the answer, as `reasoning_content` beside it is not: clients rarely send them back."""

_NOTE: Final = re.compile(r"\[\w+ [0-9a-f]{12}\]")

_SORTED: Final = msgspec.json.Encoder(order="sorted")


def text(content: Any) -> str:
    """Return the text of a content: a string, or parts that are joined."""
    if isinstance(content, str):
        return content
    return "".join(part(one) for one in read.mappings(content))


def part(fields: Mapping[str, Any]) -> str:
    """Return the text of a part; for an image, a sound or a file a note that tells two of them apart."""
    kind = read.text(fields.get("type"))
    if kind in _TEXTS:
        return read.text(fields.get("text"))
    if kind in _THOUGHTS:
        return ""
    if kind == "refusal":
        return read.text(fields.get("refusal"))
    # A client moves its cache marks from turn to turn, while the part stays the same.
    kept = {name: value for name, value in fields.items() if name != "cache_control"}
    return f"[{kind or 'part'} {hashlib.sha256(compact(kept).encode()).hexdigest()[:12]}]"


def holds_note(text: str) -> bool:
    """Say whether a text holds a note of `part`, which stands for what is no text and cannot be sent in its place."""
    return _NOTE.search(text) is not None


def compact(value: Any) -> str:
    """Return one spelling for all spellings of a value: some clients write their history anew on each turn."""
    try:
        return _SORTED.encode(value).decode()
    except (ValueError, OverflowError, RecursionError):
        pass
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        # Writing needs a few levels more of the stack than reading did.
        return ""


def paired(found: str) -> str:
    """Put the halves of a surrogate pair together that arrived in two pieces."""
    try:
        found.encode()
    except UnicodeEncodeError:
        return found.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return found
