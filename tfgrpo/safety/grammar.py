"""Which texts can be a lesson: one printable line of plain advice. Anything else is refused with its reason.

Nothing is repaired: a text that carries an address or an order to ignore instructions was not meant as advice, and what
is left of it after cutting would not be either. Words are looked at in their compatibility form (NFKC), so that wide
letters hide nothing. Mathematics passes, with LaTeX and its braces.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from tfgrpo.safety import redaction, spelling
from tfgrpo.safety.wording import RULES

LONGEST: Final = 2_000
"""Characters of an entry: its words are bounded by the library, but not how long they are."""


def fault(text: str, ours: Iterable[str] = ()) -> str | None:
    """Return why `text` cannot be a lesson, None when it can. The limit of words is the library's.

    `ours` are values of our own configuration, which no form gives away.
    """
    if redaction.holds(text, ours):
        return "it holds a secret of this configuration"
    if len(text) > LONGEST:
        return f"it has {len(text)} characters; {LONGEST} are allowed"
    if (reason := spelling.fault(text)) is not None:
        return reason
    if found := redaction.find(text):
        return f"it holds what looks like a secret or a personal datum ({found[0].kind})"
    plain = unicodedata.normalize("NFKC", text)
    for reason, pattern in RULES:
        if one := pattern.search(plain):
            return f"it holds {reason} ({one.group().strip()!r})"
    return None
