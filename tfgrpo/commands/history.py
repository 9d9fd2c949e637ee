"""`tfgrpo sets history`: who changed what, when and why, and whether the rows are still those that were written."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime

import msgspec

from tfgrpo.commands.output import emit, note, say
from tfgrpo.errors import NotFound, UsageError
from tfgrpo.store import Store
from tfgrpo.types import Change

FAILED = 1


def run(store: Store, arguments: Namespace) -> int:
    """Show the history of a set; with `--verify` say where its chain breaks, which is a failure."""
    if arguments.head is not None and not arguments.verify:
        raise UsageError("--head is looked for by --verify: give both", field="--head")
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
    fault, head = store.history.fault(arguments.set), store.history.head(arguments.set)
    lost = arguments.head is not None and not store.history.descends(arguments.set, arguments.head)
    if arguments.json:
        broken = None if fault is None else fault._asdict()
        emit({"set": arguments.set, "rows": rows, "hash": newest, "head": head, "head_lost": lost, "fault": broken})
    elif fault is None:
        say(f"{arguments.set}: {rows} rows, each as it was written, and so is every version; the head is {head}")
    if fault is not None:
        named = f"row {fault.number} of the history" if fault.what == "row" else f"version {fault.number}"
        note(f"{named} of {fault.set} is not to be trusted: {fault.reason}; compare it with a backup from before")
    if lost:
        note(
            f"the head {arguments.head} is no part of what {arguments.set} is now: its history or versions were made "
            "anew since it was noted, or it is of another set or store"
        )
    return FAILED if fault is not None or lost else 0
