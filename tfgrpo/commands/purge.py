"""`tfgrpo purge`: erase the recorded traffic of an app, an end user or a time, and say which lessons rest on it.

An end user is found by reading each kept request: what the client sent as `user`, `safety_identifier` or
`metadata.user_id`. So nothing more about people is stored than what the client sent, at the price of a slow search; and
a request whose body is gone already, or cannot be read, is not found.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from tfgrpo.commands.output import emit, say
from tfgrpo.commands.session import configuration, opened
from tfgrpo.errors import UsageError
from tfgrpo.principals import end_users
from tfgrpo.store import Deleted, Kept, Store
from tfgrpo.withdrawal import group_of


def run(arguments: Namespace) -> int:
    """Erase, or with `--dry-run` count, what the arguments name."""
    if arguments.app is None and arguments.end_user is None and arguments.before is None:
        raise UsageError("name what to erase: --app A, --end-user ID, --before DATE; several narrow it down")
    with opened(configuration(arguments, "store")) as store:
        deleted, groups = Deleted(), set[str]()
        for some in _batches(store, arguments):
            groups |= {one.group for one in some}
            deleted += store.retention.count(some) if arguments.dry_run else store.retention.erase(some)
        entries = _resting_on(store, groups)
        if not arguments.dry_run:
            store.pending.forget(groups)
    if arguments.json:
        emit({"dry_run": arguments.dry_run, **asdict(deleted), "entries": entries})
        return 0
    counts = ", ".join(f"{number} {kind}" for kind, number in asdict(deleted).items())
    say(f"{'would erase' if arguments.dry_run else 'erased'}: {counts}")
    for one in entries:
        versions = ", ".join(str(number) for number in one["versions"])
        say(f"rests on it: {one['set']} [{one['id']}] {one['text']} (versions {versions})")
    return 0


def _batches(store: Store, arguments: Namespace) -> Iterator[Sequence[Kept]]:
    before = None if arguments.before is None else _moment(arguments.before)
    after = (-1.0, "")
    seen: set[tuple[str, str]] = set()
    while some := store.retention.page(after, before=before, app=arguments.app):
        after = some[-1].started_at, some[-1].id
        if arguments.end_user is None:
            yield some
            continue
        bodies = store.traffic.bodies([one.id for one in some])
        for one in some:
            key = one.app, one.trajectory
            if key not in seen and one.id in bodies and arguments.end_user in end_users(bodies[one.id]):
                # The other turns of a conversation say the same things.
                seen.add(key)
                yield _whole(store, one, before)


def _whole(store: Store, one: Kept, before: float | None) -> list[Kept]:
    turns = store.traffic.trajectory(one.app, one.trajectory) if one.trajectory else []
    kept = [Kept(turn.id, turn.app, turn.set, turn.trajectory, turn.group, turn.started_at) for turn in turns]
    return [turn for turn in kept if before is None or turn.started_at < before] or [one]


def _resting_on(store: Store, groups: set[str]) -> list[dict[str, Any]]:
    """The entries, of any version, that were learned from one of these groups."""
    found: dict[tuple[str, str, str], list[int]] = {}
    versions = [version for name in store.sets.names() for version in store.sets.versions(name)]
    for version in versions:
        for entry in version.library.experiences:
            if groups & set(map(group_of, entry.sources)):
                found.setdefault((version.set, entry.id, entry.text), []).append(version.version)
    return [{"set": s, "id": id_, "text": text, "versions": numbers} for (s, id_, text), numbers in found.items()]


def _moment(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--before {text}: a date is 2026-01-31 or 2026-01-31T12:00 (UTC)", field="before") from error
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
