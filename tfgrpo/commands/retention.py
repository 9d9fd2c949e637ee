"""`tfgrpo retention`: what the configured ages take away, and taking it away now.

A running proxy does so by itself; this is for looking before, and for a store that no proxy serves.
"""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime

from tfgrpo import retention
from tfgrpo.commands.output import emit, say
from tfgrpo.commands.session import configuration, opened
from tfgrpo.errors import UsageError
from tfgrpo.retention import Bounds
from tfgrpo.store import Deleted


def run(arguments: Namespace) -> int:
    """Count what is too old, or delete it."""
    settings = configuration(arguments, "store", "retention")
    ages = settings.retention
    if arguments.action == "run" and not ages.any:
        raise UsageError(
            "no age is configured, so nothing is too old: set retention.bodies, retention.labels or "
            "retention.metadata, to 30d for example",
            field="retention",
        )
    with opened(settings) as store:
        beyond = retention.bounds(store, ages, time.time())
        if arguments.action == "run":
            done = sum(retention.sweep(store, beyond), Deleted())
        else:
            done = retention.older(store, beyond)
    if arguments.json:
        held = None if beyond.held is None else _day(beyond.held)
        emit({"dry_run": arguments.action != "run", "ages": ages.model_dump(), "held_since": held, **_counts(done)})
        return 0
    for line in _lines(arguments.action, ages.model_dump(), beyond, done):
        say(line)
    return 0


def _lines(action: str, ages: dict[str, float | None], beyond: Bounds, done: Deleted) -> list[str]:
    lines = [f"{kind}: kept {'for good' if age is None else f'for {age:g} s'}" for kind, age in ages.items()]
    counts = ", ".join(f"{number} {kind}" for kind, number in _counts(done).items())
    lines.append(f"{'deleted' if action == 'run' else 'too old'}: {counts}")
    if beyond.held is not None:
        lines.append(f"labels and metadata since {_day(beyond.held)} stay: a live experiment has yet to count them")
    return lines


def _counts(done: Deleted) -> dict[str, int]:
    return {kind: number for kind, number in asdict(done).items() if kind in ("exchanges", "bodies", "labels")}


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
