"""Lessons that name a tool which the traffic of their set never offered.

A tool is known by its spelling (`send_money`, `sendMoney`, in a set whose own are written so also `SendMoney`), or by
how it is spoken of ("call bank.transfer", "the `shell` tool"). Where the traffic offers no tools at all only the second
counts: there such spellings are the subject's, as in lessons about code, and nothing could be called.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_SPELLED: Final = re.compile(r"\b[a-z]{2,}(?:_+[a-z0-9]{2,})+\b|\b[a-z]{3,}(?:[A-Z][a-z0-9]+)+\b")
"""Small letters with underscores or capitals between them."""
_CAPITALS: Final = re.compile(r"\b(?:[A-Z][a-z0-9]+){2,}\b")
_CALLED: Final = re.compile(
    r"\b(?i:call|invoke|trigger)(?:ing|s)?\s+(?i:the\s+)?(?:[`'\"]([\w.-]+)[`'\"]|([A-Za-z]\w*(?:[_.]\w+)+|[a-z]+[A-Z]\w*))"
    r"|(?:[`'\"]([\w.-]+)[`'\"]|\b([A-Za-z]\w*(?:[_.-]\w+)+|[a-z]+[A-Z]\w*))\s+(?i:tools?|functions?)\b"
)
"""How a tool is spoken of."""


def fault(text: str, tools: Collection[str]) -> str | None:
    """Return why `text` cannot be a lesson where requests offer `tools`: it names another. None when it does not."""
    known = {_plain(name) for name in tools}
    named = [next(filter(None, found)) for found in _CALLED.findall(text)]
    if tools:
        named += _SPELLED.findall(text)
    if any(map(_CAPITALS.fullmatch, tools)):
        named += _CAPITALS.findall(text)
    other = next((name for name in named if _plain(name) not in known), None)
    return None if other is None else f"it names {other!r}, which is no tool of this route"


def _plain(name: str) -> str:
    """A name as it is however it is spelled: a lesson may write `find-order` for `find_order`."""
    return re.sub(r"[_.-]+", "", name).casefold()
