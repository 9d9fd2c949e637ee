"""The process of the grader `regex`: whether a pattern is found in an answer.

A process of its own, because a search that backtracks holds the interpreter and nothing inside can end it.
"""

from __future__ import annotations

import re

from tfgrpo.checks.serving import JSON, Judgement, serve


def prepare(arguments: JSON) -> Judgement:
    """Return the judgement by `pattern`, or without one by each task's reference."""
    pattern = arguments.get("pattern")
    if pattern is not None:
        _compiled(pattern, "pattern")

    def judged(answer: str, reference: str | None, _: JSON) -> bool:
        wanted = _compiled(reference or "", "reference") if pattern is None else _compiled(pattern, "pattern")
        return wanted.search(answer) is not None

    return judged


def _compiled(pattern: str, what: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"the {what} {pattern[:60]!r} is no regular expression: {error}") from error


if __name__ == "__main__":
    serve(prepare)
