"""What a grader returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grade:
    """A reward in [0, 1], and what the grader has to say about it."""

    reward: float
    critique: str | None = None
