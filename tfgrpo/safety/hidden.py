"""Characters that a person does not see and a model reads: taken out of what the optimizer is shown.

Text is smuggled in characters of the tags block or in variation selectors, keys are broken up by zero-width spaces so
that nothing finds them, and directions are turned so that a text reads otherwise than it is. Joiners and selectors of
emoji and of some scripts go too: what is left is still read. The store keeps what was recorded.
"""

from __future__ import annotations

import re
from typing import Final

MARKS: Final = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Letters and marks that show nothing (Unicode: default ignorable, or blank)."""
SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_FORMAT: Final = (
    "\u00ad\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\U000e0000-\U000e007f"
)
"""Characters of the category Cf that stand in running text, the tags block among them."""

INVISIBLE: Final = re.compile(f"[{MARKS}{SELECTORS}]")
_HIDDEN: Final = re.compile(f"[{MARKS}{SELECTORS}{_FORMAT}]+")


def without(text: str) -> str:
    """Return `text` without the characters that nobody sees."""
    return text if text.isascii() else _HIDDEN.sub("", text)
