"""First requests that nearly are one task: what keeps rollouts from falling into one group. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

ALIKE = 0.9
"""How much of two first requests must agree, word by word, for them to be shown."""

MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class NearMiss:
    """Two first requests that differ in few words: `left` against `right`, what they share left out."""

    left: str
    right: str


def find(texts: Sequence[str]) -> tuple[NearMiss, ...]:
    """Return a few pairs of neighbours, in sorted order, that differ in few words."""
    ordered = sorted({text for text in texts if text})
    found = []
    for left, right in pairwise(ordered):
        near = _compare(left.split(), right.split())
        if near is not None:
            found.append(near)
        if len(found) == MOST_SHOWN:
            break
    return tuple(found)


def _compare(left: list[str], right: list[str]) -> NearMiss | None:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE or matcher.ratio() < ALIKE:
        return None
    changed = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return NearMiss(
        left=" ... ".join(" ".join(left[code[1] : code[2]]) or "(nothing)" for code in changed),
        right=" ... ".join(" ".join(right[code[3] : code[4]]) or "(nothing)" for code in changed),
    )
