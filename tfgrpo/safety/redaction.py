"""Secrets and personal data in a text: found by their form, and replaced by a placeholder that names the kind.

What is looked for has a checksum (IBAN, ISO 13616; card numbers, ISO/IEC 7812), a fixed form (keys of providers, JSON
web tokens, e-mail addresses), or stands out as random. Plain numbers are left alone, however long: tasks are made of
them. A name or a postal address has no form and is not found. The same text always gives the same result.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

SHORTEST_VALUE: Final = 8
"""Characters from which a value of our own configuration is looked for: a shorter one stands in ordinary text."""
_ENTROPY: Final = 3.5
"""Bits a character from which a run of letters and digits is taken for random; English words have 2 to 3.3."""
_CHANGES: Final = 5
"""Changes between capitals, small letters and digits that a random run has at least; names in code have fewer."""

_TELEPHONE_DIGITS: Final = range(10, 16)
"""At most 15 with the country's (ITU-T E.164); with fewer than ten it is taken for a number."""


class Found(NamedTuple):
    """A stretch of a text, and what it is."""

    start: int
    end: int
    kind: str


def redact(text: str, ours: Iterable[str] = ()) -> str:
    """Return `text` with each secret and each personal datum replaced, as in `[redacted e-mail]`.

    `ours` are values of our own configuration, which no form gives away.
    """
    parts: list[str] = []
    at = 0
    for one in find(text, ours):
        parts += [text[at : one.start], f"[redacted {one.kind}]"]
        at = one.end
    return "".join([*parts, text[at:]]) if at else text


def find(text: str, ours: Iterable[str] = ()) -> list[Found]:
    """Return what `redact` replaces, in order and without overlap; of two that overlap, the one that begins first."""
    found = sorted([*_ours(text, ours), *_formed(text)])
    kept: list[Found] = []
    for one in found:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def holds(text: str, ours: Iterable[str]) -> bool:
    """Whether one of these values of our own configuration stands in a text."""
    return next(_ours(text, ours), None) is not None


def _ours(text: str, values: Iterable[str]) -> Iterator[Found]:
    for value in values:
        at = text.find(value) if len(value) >= SHORTEST_VALUE else -1
        while at >= 0:
            yield Found(at, at + len(value), "secret")
            at = text.find(value, at + len(value))


def _formed(text: str) -> Iterator[Found]:
    for kind, pattern, holds in _FORMS:
        for one in pattern.finditer(text):
            if holds(one.group()):
                yield Found(*one.span("it") if "it" in pattern.groupindex else one.span(), kind)


def _iban(text: str) -> bool:
    plain = text.replace(" ", "")
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


def _card(text: str) -> bool:
    digits = [int(sign) for sign in text if sign.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(digits[-1::-2])) % 10 == 0 and len(set(digits)) > 1  # 4444 4444 ... is an example


def _random(text: str) -> bool:
    kinds = ["0" if sign.isdigit() else "A" if sign.isupper() else "a" for sign in text]
    changes = sum(left != right for left, right in itertools.pairwise(kinds))
    if len(set(kinds)) < 3 or changes < _CHANGES:  # noqa: PLR2004 - capitals, small letters, digits
        return False
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values()) >= _ENTROPY


def _mixed(text: str) -> bool:
    return text.isalnum() and not text.isdigit() and not text.isalpha()


def _always(_: str) -> bool:
    return True


_PRIVATE_KEY: Final = r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\\\s]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
_KEYS: Final = (
    r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"(?:sk|pk|rk)[-_](?:[a-z]{2,8}[-_]){0,3}[A-Za-z0-9_-]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"(?:gh[oprsu]_|github_pat_|glpat-|npm_|pypi-|hf_|gsk_|xai-|r8_|dop_v1_|shp(?:at|ss)_)[\w-]{16,}",
    r"xox[abeoprs]-[\w-]{10,}",
    r"AIza[\w-]{30,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
)

_FORMS: Final[tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...]] = (
    ("key", re.compile(rf"{_PRIVATE_KEY}|\b(?:{'|'.join(_KEYS)})"), _always),
    ("key", re.compile(r"(?i:\bbearer\s+)(?P<it>[\w.~+/-]{16,}=*)"), _always),
    (
        "key",
        re.compile(
            r"(?i:\b(?:api[_-]?key|secret(?:[_-]?key)?|access[_-]?token|auth[_-]?token|password|passwd)"
            r"[\"']?\s*[:=]\s*[\"']?)(?P<it>[^\s\"',;{}\[\]()]{6,})"
        ),
        _always,
    ),
    ("key", re.compile(r"://[^\s/:@]{1,100}:(?P<it>[^\s/@]{1,100})@"), _always),
    ("key", re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{20,}(?![A-Za-z0-9])"), _random),
    ("key", re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32,}(?![A-Za-z0-9])"), _mixed),
    (
        "e-mail",
        re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,190}[A-Za-z0-9])?\.[A-Za-z]{2,24}\b"),
        _always,
    ),
    ("IBAN", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"), _iban),
    (
        "card number",
        re.compile(
            r"(?<![\w.,])(?:(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6011|65\d\d)([ -]?)\d{4}\1\d{4}\1\d{4}"
            r"|3[47]\d\d([ -]?)\d{6}\2\d{5})(?![\w]|[.,]\d)"
        ),
        _card,
    ),
    # Digits in a row are a number; a telephone number is grouped as one, or begins with + and ten digits or more. One
    # that begins with 00 is grouped: 0012345 is a number with leading zeros.
    (
        "telephone number",
        re.compile(r"(?<![\w)+.-])(?:\+1[ .-]?)?(?:\(\d{3}\) ?|\d{3}[.-])\d{3}[.-]\d{4}(?![\w-])"),
        _always,
    ),
    (
        "telephone number",
        re.compile(
            r"(?<![\w)\]}+.])(?:(?<![\w)\]}$] )|(?<=[^\W\d_]{2} ))\+[1-9]\d{0,2}(?:[ .-]?\(?\d{2,5}\)?){2,5}(?![\w])"
        ),
        lambda text: sum(map(str.isdigit, text)) in _TELEPHONE_DIGITS,
    ),
    (
        "telephone number",
        re.compile(
            r"(?<![\w)\]}+.,-])(?:(?<![\w)\]}$] )|(?<=[^\W\d_]{2} ))00 ?[1-9]\d{0,2}(?:[ .-]\(?\d{2,8}\)?){2,5}(?![\w])"
        ),
        lambda text: sum(map(str.isdigit, text[2:])) in _TELEPHONE_DIGITS,
    ),
)
