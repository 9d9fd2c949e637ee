"""Grading the tasks of a simulated world: the last line `Answer: X` against the reference.

As a grader it is named `python:tfgrpo.simulation.tasks:grade`.
"""

from __future__ import annotations

import re

_ANSWER = re.compile(r"^\s*answer:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


def grade(answer: str, reference: str | None) -> float:
    """1.0 when the last line `Answer: X` of the answer names the reference, else 0.0."""
    found = _ANSWER.findall(answer)
    right = (reference or "").strip().casefold()
    return float(bool(found) and bool(right) and found[-1].casefold() == right)
