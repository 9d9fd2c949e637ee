"""The quorum of a run: whether one is asked for, what waits for it, and what to say of both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfgrpo.commands.output import emit, say
from tfgrpo.commands.session import teaching
from tfgrpo.configuration import Configuration
from tfgrpo.quorum import Quorum, counted
from tfgrpo.store import Store
from tfgrpo.teaching import Teaching
from tfgrpo.types import Library, Pending

NONE = Quorum(1, 1)
"""What any lesson meets."""
MOST_SHOWN = 5
"""Pending lessons that a run names."""


def needed(store: Store, settings: Configuration, set_name: str | None, taught: Teaching) -> Quorum:
    """Return the quorum for lessons from the traffic recorded under a set, or under none.

    Groups are always asked for: one conversation alone teaches nothing. Where nobody set a quorum, there are no apps,
    and one key made all that teaches, one principal is enough: there is nobody else whom a second could protect.
    """
    safety = settings.safety
    if not safety.quorum_is_set and not settings.apps:
        makers = store.makers.keys(set_name=set_name, unnamed=set_name is None, apps=taught.apps, most=2)
        if len(makers) <= 1:
            return Quorum(safety.min_groups, 1, alone=True)
    return Quorum(safety.min_groups, safety.min_principals)


def asked(quorum: Quorum, makers: Mapping[str, Collection[str]], library: Library) -> Quorum:
    """Return the quorum of a run from groups that these principals made; what `library` holds has met it."""
    return replace(quorum, makers=makers, trusted=frozenset(entry.text for entry in library.experiences))


def waiting(store: Store, set_name: str, library: Library) -> tuple[Pending, ...]:
    """Return what is pending in a set and not active meanwhile."""
    held = {entry.text for entry in library.experiences}
    return tuple(one for one in store.pending.of(set_name) if one.text not in held)


def completed(quorum: Quorum, pending: Sequence[Pending]) -> bool:
    """Whether a pending lesson may be active without another group: the quorum was lowered."""
    return any(quorum.met(one.backing, one.backing) for one in pending)


def unversioned(store: Store, set_name: str) -> set[str]:
    """Return the runs that left nothing but pending lessons: what they learned from is not learned from again."""
    made = {version.run for version in store.sets.versions(set_name)}
    return {run for one in store.pending.of(set_name) for run in one.runs} - made


def told(pending: Sequence[Pending], quorum: Quorum | None = None) -> list[dict[str, Any]]:
    """Return pending lessons as JSON, with what each waits for. Principals are counted, not named."""
    return [
        {"text": one.text, "groups": len(one.backing), "principals": len(one.principals), "sources": list(one.sources)}
        | ({} if quorum is None else {"waits_for": _waits_for(one, quorum)})
        for one in pending
    ]


def show(store: Store, settings: Configuration, set_name: str, *, as_json: bool) -> None:
    """Show what is pending in a set, and what it waits for."""
    taught = teaching(settings, set_name)
    named = store.makers.keys(set_name=set_name, apps=taught.apps, most=1)
    quorum = needed(store, settings, set_name if named else None, taught)
    pending = told(store.pending.of(set_name), quorum)
    if as_json:
        emit(pending)
        return
    for one in pending:
        say(_line(one))
    if not pending:
        say(f"nothing is pending in {set_name}: every lesson that was learned has its quorum, or none was asked for")


def explain(result: Mapping[str, Any]) -> list[str]:
    """Say what was asked for where that is less than usual; what is pending, and what to do about it."""
    lines, pending = [], result["pending"]
    if result["quorum"] == str(NONE):
        lines.append(
            "one group was enough for a lesson: no quorum was asked for (safety.min_groups, safety.min_principals)"
        )
    if result["one_principal"]:
        lines.append("one key made all the traffic, so no second principal is asked for (safety.min_principals)")
    if pending:
        below = f"{counted(len(pending), 'lesson')} below the quorum of {result['quorum']}: pending, and in no version"
        lines.append(f"{below} until others say the same; `tfgrpo sets pending {result['set']}` shows all")
        lines += [f"pending: {_line(one)}" for one in pending[:MOST_SHOWN]]
        lines.append(
            "to ask for less: safety.min_groups and safety.min_principals in the configuration, or "
            "TFGRPO_SAFETY__MIN_GROUPS=1 TFGRPO_SAFETY__MIN_PRINCIPALS=1 before the command; then train again"
        )
    return lines


def _line(one: Mapping[str, Any]) -> str:
    backed = f"{counted(one['groups'], 'group')} of {counted(one['principals'], 'principal')}"
    waits = one["waits_for"]
    more = [counted(waits[name], f"more {name[:-1]}") for name in ("groups", "principals") if waits[name]]
    return f"{one['text']} ({backed}; waits for {' and '.join(more) or 'the next run'})"


def _waits_for(one: Pending, quorum: Quorum) -> dict[str, int]:
    groups, principals = quorum.lacks(one.backing, one.backing)
    return {"groups": groups, "principals": principals}
