"""What a run came to, in sentences; and numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from tfgrpo.report.record import Edit, Gate, Guard, Record
from tfgrpo.usage import money as money


def outcome(run: Record) -> str:
    """Return what the run left behind."""
    result = run.result
    if result.error:
        return f"The run {'stopped' if run.status == 'stopped' else 'failed'}: {result.error}"
    if run.status == "running":
        return "The run is not at its end."
    if result.version is None:
        return "The library did not change, so there is no new version."
    parent = "nothing" if not result.parent else f"version {result.parent}"
    deployed = "deployed it" if result.deployed else "did not deploy it"
    return f"The run made {run.set}@{result.version}, from {parent}. Status: {result.status}. The run {deployed}."


def gate(found: Gate | None) -> str:
    """Return the gate's decision."""
    if found is None:
        return "No held-out comparison was made in this run: nothing here says whether the lessons help."
    low, high = found.interval
    sure = "an interval" if found.level is None else f"an interval (at {100 * (1 - found.level):.4g} percent)"
    failed = f" {found.failed} rollouts gave no answer and count as 0." if found.failed else ""
    return (
        f"On {found.n} held-out tasks, {found.k} samples a task and side, the new library earned {found.mean:.3f} "
        f"and the one before {found.mean_against:.3f}: a difference of {found.difference:+.3f}, with {sure} from "
        f"{low:+.3f} to {high:+.3f}. {_why(found)}: {found.verdict}. An effect below "
        f"{found.smallest_detectable:.3f} would likely not have been seen.{failed}"
    )


def guard(found: Guard) -> str:
    """Return what came of a guard."""
    low, high = found.interval
    return (
        f"Guard {found.guard}: {found.verdict}. The difference on {found.n} tasks is {found.difference:+.3f}, with an "
        f"interval from {low:+.3f} to {high:+.3f}."
    )


def edit(one: Edit) -> str:
    """Return an operation with what it is about."""
    ids = f" {', '.join(one.ids)}" if one.ids else ""
    return f"{one.operation}{ids}" + (f": {one.text}" if one.text else "")


def reward(value: float | None) -> str:
    """Return a reward, or a dash where there is none."""
    return "–" if value is None else f"{value:.3f}"


def rewards(values: Sequence[float | None]) -> str:
    """Return the rewards of a group."""
    return ", ".join("–" if value is None else f"{value:.2g}" for value in values)


def seconds(took: float | None) -> str:
    """Return how long a run took."""
    if took is None:
        return "not ended"
    minutes, rest = divmod(round(took), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _why(found: Gate) -> str:
    """Return what the verdict rests on. It may say less than the interval does: guards, and the least effect wanted."""
    low, high = found.interval
    if high < 0:
        return "The whole interval lies below zero"
    if any(one.verdict == "harmed" for one in found.guards):
        return "A guard got worse"
    if low > 0 and found.verdict == "helps":
        return "The whole interval lies above zero"
    if low > 0:
        return "The interval lies above zero, but the effect is smaller than wanted or a guard is unclear"
    return "The interval does not leave zero out"
