"""What is wrong with the characters of a lesson, whatever they say: unseen ones, other forms, other alphabets' letters.

Letters of a second alphabet that look like Latin ones hide a word from every pattern. Mathematics mixes Greek in, but
not inside of words, and never an omicron. Nothing is repaired.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from tfgrpo.safety import hidden

_NOT_PRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_AS_SHOWN: Final = ("<super>", "<sub>", "<fraction>")
_PLAIN: Final = frozenset("\u2026\u0e33\u0eb3\uff0c\uff1a\uff1b\uff01\uff1f\uff08\uff09")
"""Everyday signs that NFKC writes otherwise: the ellipsis, a vowel of Thai and of Lao, and the wide punctuation of
Chinese and Japanese. The rules for words look at their plain form, so they hide nothing."""
_MIXED: Final = frozenset({"CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "DESERET", "OSAGE"})
"""Scripts whose letters are taken for Latin ones."""
_GREEK: Final = re.compile(
    r"[A-Za-z][\u0370-\u03ff]+[A-Za-z]|[A-Za-z][\u03bfΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]|[\u03bfΑΒΕΖΗΙΚΜΝΟΡΤΥΧ][A-Za-z]"
)
"""Greek where mathematics has none: between Latin letters, or beside one, where it is Latin to the eye itself."""
_DRESSED: Final = re.compile(
    "[\u1d00-\u1d2b\ua730\ua731]|[\U0001f150-\U0001f169\U0001f170-\U0001f189]{2}|(?:[\U0001f1e6-\U0001f1ff] ?){3}"
)
"""Letters in another dress that no language writes words with: small and turned capitals, letters in dark circles and
boxes, and those that flags are made of (a flag is two)."""
_MARKED: Final = re.compile(
    "[\u0334-\u0338\u20d0-\u20f0]|[A-Za-z]{2}[\u0300-\u036f]+|[A-Za-z][\u0300-\u036f]+[A-Za-z]{2}"
)
"""Strokes through letters, and marks inside of words that no language composes with them. A mean is a letter alone."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN_LIKE: Final = frozenset("асеорхуѕіјһԁԛԝѵкмнтвьАСЕОРХУЅІЈҺԚԜѴКМНТВ")
"""Cyrillic letters that are Latin to the eye, as capitals or as small ones."""
_SHORTEST: Final = 3
"""Letters of a word from which it is taken for a disguise: Russian has words of one and two that look Latin."""


def fault(text: str) -> str | None:
    """Return what is wrong with the characters of `text`, None when nothing is."""
    for sign in text:
        if not _printable(sign):
            name = unicodedata.name(sign, "a control character")
            return f"it holds U+{ord(sign):04X} ({name}); an entry is one line of printable characters"
        if not _compatible(sign):
            plain = unicodedata.normalize("NFKC", sign)
            return f"it holds U+{ord(sign):04X}, a form of {plain!r}; write the plain one (NFKC)"
    if unicodedata.normalize("NFC", text) != text:
        return "its letters are composed of parts; write them composed (NFC, NFKC)"
    return None if text.isascii() else _disguise(text)


def _disguise(text: str) -> str | None:
    """Return what hides a word behind other letters or marks."""
    if one := _MARKED.search(text):
        return f"the letters {one.group()!r} carry marks that hide them"
    if one := _DRESSED.search(text):
        return f"{one.group()!r} is of letters that only look Latin"
    words = _WORD.findall(text)
    if mixed := next((word for word in words if _two_scripts(word)), None):
        return f"the word {mixed!r} mixes letters of two scripts"
    disguised = next((word for word in words if len(word) >= _SHORTEST and _LATIN_LIKE.issuperset(word)), None)
    if disguised and sum(word.isascii() for word in words) * 2 >= len(words):
        return f"the word {disguised!r} is of letters that only look Latin"
    return None


def _printable(sign: str) -> bool:
    return unicodedata.category(sign) not in _NOT_PRINTABLE and not hidden.INVISIBLE.match(sign)


def _compatible(sign: str) -> bool:
    """Whether a character is its own plain form. Exponents, indices and fractions say what they show."""
    if sign in _PLAIN or unicodedata.decomposition(sign).startswith(_AS_SHOWN):
        return True
    return unicodedata.normalize("NFKC", sign) == sign


def _two_scripts(word: str) -> bool:
    if word.isascii():
        return False
    scripts = {unicodedata.name(sign, "?").split()[0] for sign in word}
    return "LATIN" in scripts and (bool(scripts & _MIXED) or _GREEK.search(word) is not None)
