"""One poison: where it stands, what a fooled optimizer makes of it, and what must come of that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Place = Literal["system", "user", "turn", "tool", "arguments", "assistant", "split", "comment", "reference"]
"""The client's system text; its first request; a later one; the result of a tool; what a tool is called with; the
model's answer; a piece in each of several requests; the comment and the reference of a label."""


@dataclass(frozen=True, slots=True)
class Poison:
    """`says` stands at `place`; `lesson` is what is made of it; `reason` is why that must be refused."""

    name: str
    place: Place
    says: str
    lesson: str
    reason: str | None
    shown: str | None = field(default=None, kw_only=True)
    """What the optimizer sees of it, where that is not what was said."""
    secrets: tuple[str, ...] = field(default=(), kw_only=True)
    """What it must never see."""
