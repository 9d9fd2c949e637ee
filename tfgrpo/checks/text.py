r"""Comparing an answer with a reference as text: equal after folding, or the same number.

An answer may end in a line `Answer: X` or `#### X` or hold a `\boxed{X}`; where it does, the last of these is what
counts. Nothing here understands mathematics.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

from tfgrpo.errors import GraderError

Comparison: TypeAlias = Callable[[str, str], bool]

_MARKED: Final = re.compile(
    r"^[\s*_>#-]*(?:the\s+)?(?:final\s+)?(?:answer|result)\s*(?:\*\*|__)?\s*(?::|is\b:?)\s*(?:\*\*|__)?(?P<said>.*\S)"
    r"|^\s*####\s*(?P<hash>.*\S)"
    r"|\\boxed\s*\{",
    re.MULTILINE | re.IGNORECASE,
)
_THOUGHT: Final = re.compile(r"^\s*<(think|thinking|reasoning)>.*?</\1>\s*", re.DOTALL)
_SPACE: Final = re.compile(r"\s+")
_NUMBER: Final = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?(?:\s*/\s*\d+)?")
_EDGES: Final = " \t.,;:!?\"'`*_$()[]{}"


def final(answer: str) -> str:
    """Return what the answer marks as its result, the last mark counting; without any the whole answer.

    What stands in reasoning tags at its start is no part of it.
    """
    found = answer = _THOUGHT.sub("", answer)
    for mark in _MARKED.finditer(answer):
        found = mark["said"] or mark["hash"] or _braced(answer, mark.end())
    return found


def fold(text: str) -> str:
    """Return `text` as it is compared: one case, one kind of space, no punctuation at the ends."""
    plain = _SPACE.sub(" ", unicodedata.normalize("NFKC", text).replace("\u2212", "-"))
    return plain.casefold().strip(_EDGES)


def exact(answer: str, reference: str) -> bool:
    """Whether the answer's result is the reference, after folding."""
    return fold(final(answer)) == fold(reference)


def number(answer: str, reference: str) -> bool:
    """Whether the last number of the answer's result is the last number of the reference."""
    wanted = last_number(reference)
    if wanted is None:
        raise GraderError(f"the reference {reference[:60]!r} holds no number; use another grader")
    said = last_number(final(answer))
    return said is not None and said == wanted


def last_number(text: str) -> Decimal | None:
    """Return the last number in `text`; thousands separators are dropped, fractions divided."""
    found = _NUMBER.findall(text.replace("\u2212", "-"))
    if not found:
        return None
    top, _, bottom = found[-1].replace(",", "").partition("/")
    try:
        value = Decimal(top.strip())
        return value / Decimal(bottom.strip()) if bottom else value
    except (InvalidOperation, ZeroDivisionError):
        return None


def _braced(text: str, start: int) -> str:
    """Return what stands from `start` to the brace that closes it."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]


COMPARISONS: Final[dict[str, Comparison]] = {"exact": exact, "number": number}
