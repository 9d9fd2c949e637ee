"""Recorded text as a page shows it: escaped, and with what nobody sees, or what turns letters round, spelled out.

A terminal's control codes, invisible and direction-changing characters are ways to show one thing and mean another.
"""

from __future__ import annotations

import json
import re
from typing import Final

from markupsafe import Markup, escape

LONGEST: Final = 20_000
"""Characters of one text that a page shows."""

_MOST_SPELLED: Final = 8
"""Of characters in a row that nobody sees: each takes the room of a word."""

_MOST_LAID_OUT: Final = 4_000
_MOST_BRACKETS: Final = 200

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]+"
)


def shown(text: str, longest: int = LONGEST) -> Markup:
    """Return the text for a page, cut to `longest` characters, which it then says."""
    rest = len(text) - longest
    safe = _UNSEEN.sub(_spelled, str(escape(text[:longest].replace("\r\n", "\n"))))
    if rest > 0:
        safe += f'<span class="cut">… {rest:,} more characters</span>'
    return Markup(safe)  # noqa: S704 - escaped above


def laid_out(text: str) -> str:
    """Return JSON with line breaks, where it is short and not nested into the sky; all else as it is."""
    if len(text) > _MOST_LAID_OUT or text.count("[") + text.count("{") > _MOST_BRACKETS:
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _spelled(found: re.Match[str]) -> str:
    some = found[0]
    said = "".join(f'<span class="unseen">U+{ord(one):04X}</span>' for one in some[:_MOST_SPELLED])
    rest = len(some) - _MOST_SPELLED
    return said + (f'<span class="unseen">{rest:,} more unseen</span>' if rest > 0 else "")
