r"""The process of the grader `math`: whether an answer is mathematically the reference, as math-verify says.

Both may be LaTeX (`\frac{1}{2}`, `\boxed{0.5}`) or plain. The package's own time limits are off: they are alarms that
turn a judgement which takes too long into "wrong", and our process is killed instead.
"""

from __future__ import annotations

from typing import Any

from math_verify import parse, verify

from tfgrpo.checks import text
from tfgrpo.checks.serving import JSON, Judgement, serve


def prepare(_: JSON) -> Judgement:
    """Return the judgement; it takes no arguments."""
    return _judged


def _judged(answer: str, reference: str | None, metadata: JSON) -> bool:
    return any(_equal(answer, one) for one in (reference, *metadata.get("also_right", ())))


def _equal(answer: str, reference: str | None) -> bool:
    if text.exact(answer, reference or ""):
        return True
    gold = _parsed(_latex(reference or ""))
    if not gold:
        raise ValueError(f"the reference {(reference or '')[:60]!r} holds no mathematics; use another grader")
    said = text.final(answer)
    # A marked result need not be in dollars; a whole answer is searched by the package for what is.
    candidates = [said] if said == answer else [said, _latex(said)]
    return any(verify(gold, _parsed(one), timeout_seconds=None) for one in candidates)


def _parsed(said: str) -> list[Any]:
    found: list[Any] = parse(said, parsing_timeout=None)
    return found


def _latex(said: str) -> str:
    """Return `said` as a formula, for outside of dollars and boxes LaTeX is not looked for."""
    return said if "$" in said or "\\boxed" in said or "\\[" in said or "\\(" in said else f"${said}$"


if __name__ == "__main__":
    serve(prepare)
