"""`tfgrpo sets history`: who changed what, when and why, and whether the rows are still those that were written."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime

import msgspec

from tfgrpo.commands.output import emit, note, say
from tfgrpo.errors import NotFound
from tfgrpo.store import Store
from tfgrpo.types import Change

FAILED = 1


def run(store: Store, arguments: Namespace) -> int:
    """Show the history of a set; with `--verify` say where its chain breaks, which is a failure."""
    rows, newest = store.history.newest(arguments.set)
    if not rows and arguments.set not in store.sets.names():
        raise NotFound(f"there is no set {arguments.set!r}; `tfgrpo sets list` shows those there are")
    if arguments.verify:
        return _verify(store, arguments, rows, newest)
    return _show(arguments, store.history.of(arguments.set))


def _show(arguments: Namespace, changes: list[Change]) -> int:
    if arguments.json:
        emit([msgspec.to_builtins(change, str_keys=True) for change in changes])
        return 0
    for change in changes:
        at = datetime.fromtimestamp(change.created_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        reason = f": {change.reason}" if change.reason else ""
        say(f"{change.number} {at} {change.action} {_what(change)} by {change.actor}{reason}")
    if not changes:
        say(f"nothing was done to {arguments.set} yet")
    return 0


def _what(change: Change) -> str:
    if change.revision is None:
        named = f"version {change.version}" if change.version is not None else ""
    else:
        candidate = f", candidate {change.candidate}" if change.candidate is not None else ""
        named = f"live {change.live or 'nothing'}{candidate} (revision {change.revision})"
    withdrawn = f"entries {', '.join(change.entries)}" if change.entries else ""
    return "; ".join(part for part in (named, withdrawn) if part)


def _verify(store: Store, arguments: Namespace, rows: int, newest: str | None) -> int:
    fault = store.history.fault(arguments.set)
    if arguments.json:
        broken = None if fault is None else {"number": fault.number, "reason": fault.reason}
        emit({"set": arguments.set, "rows": rows, "hash": newest, "fault": broken})
    elif fault is None:
        say(f"{arguments.set}: {rows} rows, each as it was written; the newest hash is {newest or 'none'}")
    if fault is None:
        return 0
    note(
        f"row {fault.number} of the history of {fault.set} is not to be trusted: {fault.reason}; compare it with a "
        "backup from before"
    )
    return FAILED
