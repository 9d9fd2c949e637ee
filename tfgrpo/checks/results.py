"""What a grader may return: a number in [0, 1], a bool, or such a one with a critique."""

from __future__ import annotations

from numbers import Real
from typing import Any, Final

LONGEST: Final = 1_000_000
"""Characters of a critique that are kept: what the optimizer is shown of it is far shorter."""


def judged(result: Any) -> tuple[float, str | None]:
    """Return reward and critique; ValueError says what was returned instead."""
    reward, critique = result if isinstance(result, list | tuple) and len(result) == 2 else (result, None)  # noqa: PLR2004 - a pair
    if not isinstance(reward, Real) or not 0 <= float(reward) <= 1:
        raise ValueError(f"it returned {_shown(result)}; a reward is a number in [0, 1]")
    if critique is not None and not isinstance(critique, str):
        raise ValueError(f"it returned {_shown(critique)} as its critique, which is no text")
    return float(reward), None if critique is None else critique[:LONGEST]


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:80]}..."  # noqa: PLR2004 - one line of an error
