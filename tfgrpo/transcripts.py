"""Messages as the plain text that the optimizer reads, cut to a budget: tool results first, then the middle.

What an agent wrote tells more about it than what its tools sent back, and where it began and ended more than what
lies between. Pure; it knows no stage.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tfgrpo.prompts import shorten
from tfgrpo.types import Message

_RESULT: Final = "result of a tool"
_FIRST_LINE: Final = re.compile(
    rf"^[ \t]*\[(?=(?:system|developer|user|assistant|tool|{_RESULT})\][ \t]*$)", re.IGNORECASE | re.MULTILINE
)
_NOTE: Final = 45
"""Characters that the note of a cut takes."""
LEAST_RESULT: Final = 400
"""Characters that are left of each tool result, however long the transcript is."""


def transcript(messages: Sequence[Message], characters: int | None = None) -> str:
    """Return messages as plain text of at most about `characters`. One stands alone, several each under its role."""
    text = _joined(messages)
    if characters is None or len(text) <= characters:
        return text
    over = len(text) - characters
    results = [len(message.text) for message in messages if message.role == "tool"]
    most = _level(results, sum(results) - over - _NOTE * len(results))
    cut = [replace(one, text=shorten(one.text, most)) if one.role == "tool" else one for one in messages]
    return shorten(_joined(cut), characters)


def _level(lengths: Sequence[int], room: int) -> int:
    """Return the length to which the longest must be cut for all to fit in `room`, never under `LEAST_RESULT`."""
    left = len(lengths)
    for length in sorted(lengths):
        if length * left >= room:
            return max(LEAST_RESULT, room // left)
        room -= length
        left -= 1
    return max([LEAST_RESULT, *lengths])


def _joined(messages: Sequence[Message]) -> str:
    if len(messages) == 1 and not messages[0].tool_calls:
        return messages[0].text
    return "\n\n".join(_shown(message) for message in messages)


def _shown(message: Message) -> str:
    name = _RESULT if message.role == "tool" else message.role
    calls = [f"(calls {call.name} with {call.arguments})" for call in message.tool_calls]
    # A message that writes another's first line inside itself would speak for it.
    text = _FIRST_LINE.sub("&#91;", message.text)
    return "\n".join([f"[{name}]", *([text] if text else []), *calls])
