"""Which texts can be a lesson: one printable line of plain advice. Anything else is refused with its reason.

Nothing is repaired: a text that carries an address or an order to ignore instructions was not meant as advice, and what
is left of it after cutting would not be either. Words are looked at in their compatibility form (NFKC), so that wide
letters hide nothing. Mathematics passes, with LaTeX and its braces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from tfgrpo.safety import redaction
from tfgrpo.safety.wording import RULES, TOOL

_INVISIBLE: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
"""Letters and marks that show nothing."""
_NOT_PRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_AS_SHOWN: Final = ("<super>", "<sub>", "<fraction>")
_ELLIPSIS: Final = "\u2026"
_LOOKALIKES: Final = frozenset({"CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC"})
"""Scripts whose letters are taken for Latin ones. Greek is left out: mathematics mixes it in."""


def fault(text: str, tools: Collection[str] | None = None) -> str | None:
    """Return why `text` cannot be a lesson, None when it can.

    `tools` are those that its route has, where they are known: a lesson that names another is refused. The limit of
    words is the library's.
    """
    if (reason := _spelling(text)) is not None:
        return reason
    if found := redaction.find(text):
        return f"it holds what looks like a secret or a personal datum ({found[0].kind})"
    plain = unicodedata.normalize("NFKC", text)
    for reason, pattern in RULES:
        if one := pattern.search(plain):
            return f"it holds {reason} ({one.group().strip()!r})"
    named = TOOL.findall(plain) if tools is not None else []
    other = next((name for name in named if name not in (tools or ())), None)
    return None if other is None else f"it names {other!r}, which is no tool of this route"


def _spelling(text: str) -> str | None:
    """Return what is wrong with the characters of a text, whatever they say."""
    for sign in text:
        if not _printable(sign):
            name = unicodedata.name(sign, "a control character")
            return f"it holds U+{ord(sign):04X} ({name}); an entry is one line of printable characters"
        if not _compatible(sign):
            plain = unicodedata.normalize("NFKC", sign)
            return f"it holds U+{ord(sign):04X}, a form of {plain!r}; write the plain one (NFKC)"
    if unicodedata.normalize("NFC", text) != text:
        return "its letters are composed of parts; write them composed (NFC, NFKC)"
    mixed = next((word for word in re.findall(r"[^\W\d_]+", text) if _two_scripts(word)), None)
    return None if mixed is None else f"the word {mixed!r} mixes letters of two scripts"


def _printable(sign: str) -> bool:
    selects = "\ufe00" <= sign <= "\ufe0f" or "\U000e0100" <= sign <= "\U000e01ef"
    return unicodedata.category(sign) not in _NOT_PRINTABLE and not selects and sign not in _INVISIBLE


def _compatible(sign: str) -> bool:
    """Whether a character is its own plain form. Exponents, indices and fractions say what they show."""
    if sign == _ELLIPSIS or unicodedata.decomposition(sign).startswith(_AS_SHOWN):
        return True
    return unicodedata.normalize("NFKC", sign) == sign


def _two_scripts(word: str) -> bool:
    if word.isascii():
        return False
    scripts = {unicodedata.name(sign, "?").split()[0] for sign in word}
    return "LATIN" in scripts and bool(scripts & _LOOKALIKES)
