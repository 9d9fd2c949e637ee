"""Which texts can be a lesson: one printable line of plain advice. Anything else is refused with its reason.

Nothing is repaired: a text that carries an address or an order to ignore instructions was not meant as advice, and what
is left of it after cutting would not be either. Words are looked at in their compatibility form (NFKC), so that wide
letters hide nothing. Mathematics passes, with LaTeX and its braces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from tfgrpo.safety import redaction, spelling
from tfgrpo.safety.wording import orders, rules

LONGEST: Final = 2_000
"""Characters of an entry: its words are bounded by the library, but not how long they are."""
_JOINED: Final = re.compile(r"_+|(?<=[a-z])(?=[A-Z])")
"""What joins the words of an order into one, as in `ignore_the_rules` and `ignoreTheRules`."""


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
    return _broken(rules(), plain) or _broken(orders(), _JOINED.sub(" ", plain))


def _broken(rules: Iterable[tuple[str, re.Pattern[str]]], text: str) -> str | None:
    found = ((reason, pattern.search(text)) for reason, pattern in rules)
    return next((f"it holds {reason} ({one.group().strip()!r})" for reason, one in found if one), None)
