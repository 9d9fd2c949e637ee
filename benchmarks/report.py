"""A run as Markdown, for the terminal and for README.md alike. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from benchmarks.cases import Bodies, Case
from benchmarks.goals import GOALS, Goal
from benchmarks.results import Middle, Results

BUSY: Final = 0.9
"""From this share of its core on, the load generator holds a rate back, not the target."""


def markdown(results: Results, cases: Sequence[Case], about: Mapping[str, str]) -> str:
    """Return the whole report. `about`: machine, versions, date."""
    parts = [_about(about)]
    parts += [_case(case, results) for case in cases]
    parts += [_memory(results), _goals(results)]
    return "\n\n".join(parts) + "\n"


def _about(about: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in about.items())


def _case(case: Case, results: Results) -> str:
    title = f"### {case.name}: {case.what}\n\n"
    columns = _BODIES if isinstance(case, Bodies) else _STREAMS
    rows = [
        [target, *[show(results.middle(case.name, target, name)) for _, name, show in columns]]
        for target in results.rounds[case.name]
    ]
    busy = {target: results.middle(case.name, target, "busy") for target in results.rounds[case.name]}
    for row in rows:
        if (share := busy[row[0]]) is not None and share.value > BUSY:
            row[1] = f"> {row[1]}"
    return title + table(["", *[name for name, _, _ in columns]], rows)


def _memory(results: Results) -> str:
    rows = [[target, *[f"{values[name]:.0f}" for name in _MEMORY]] for target, values in results.memory.items()]
    return "### Resident memory, MiB\n\n" + table(["", *_MEMORY], rows)


def _goals(results: Results) -> str:
    rows = []
    for goal in GOALS:
        reached = goal.reached(results)
        said = "" if reached is None else times(goal, reached)
        wanted = "" if goal.wanted is None else times(goal, goal.wanted)
        against = f"{goal.peer}'s" if goal.peer is not None else ""
        verdict = goal.verdict(reached)
        if verdict != "not measured":
            rows.append([goal.case, goal.what, against, said, times(goal, goal.required), wanted, verdict])
    header = ["case", "this proxy's", "as a multiple of", "reached", "required", "wanted", "verdict"]
    return "### Targets\n\n" + table(header, rows)


def times(goal: Goal, value: float) -> str:
    """Write a multiple as people say it: 1/30, 2.1 times; a plain value as it is."""
    if goal.peer is None:
        return f"{value:.2f}"
    if value < 0.5:  # noqa: PLR2004 - from here on a fraction reads better
        return f"1/{1 / value:.1f}".removesuffix(".0")
    return f"{value:.2f}".rstrip("0").rstrip(".") + " times"


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _number(digits: int) -> Callable[[Middle | None], str]:
    def show(middle: Middle | None) -> str:
        if middle is None:
            return ""
        value = f"{middle.value:,.{digits}f}"
        if middle.least == middle.most:
            return value
        return f"{value} ({middle.least:,.{digits}f} to {middle.most:,.{digits}f})"

    return show


def _plain(middle: Middle | None) -> str:
    return "" if middle is None else f"{middle.value:,.2f}"


def _share(middle: Middle | None) -> str:
    return "" if middle is None else f"{100 * middle.least:.0f} %"


_MEMORY: Final = ("idle", "after the run", "most")
_BODIES: Final = (
    ("requests/s", "rate", _number(0)),
    ("CPU ms/request", "cpu", _number(3)),
    ("p50 ms", "p50", _plain),
    ("p99 ms", "p99", _plain),
    ("added p50 ms", "added_p50", _number(2)),
    ("added p99 ms", "added_p99", _plain),
)
_STREAMS: Final = (
    ("chunks/s", "rate", _number(0)),
    ("CPU µs/chunk", "cpu", _number(1)),
    ("first chunk p50 ms", "p50", _number(2)),
    ("first chunk p99 ms", "p99", _plain),
    ("complete", "complete", _share),
)
