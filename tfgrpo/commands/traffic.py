"""`tfgrpo traffic export` and `import`: traffic out as training data or as it is, and in from elsewhere."""

from __future__ import annotations

import re
from argparse import Namespace
from dataclasses import asdict
from typing import Final

from tfgrpo.commands import groups as census
from tfgrpo.commands.output import emit, note, say, write
from tfgrpo.commands.session import configuration, opened
from tfgrpo.configuration import DEFAULT_FILE, read
from tfgrpo.errors import Conflict, UsageError
from tfgrpo.fine_tuning import examples
from tfgrpo.recorded import files, ours
from tfgrpo.recorded.placing import Placing
from tfgrpo.store import Store
from tfgrpo.trajectories import IGNORED_BY_DEFAULT

MOST_NAMED: Final = 20
"""So many unfit lines are named one by one."""


def run(arguments: Namespace) -> int:
    """Run one action."""
    if arguments.action == "import":
        return _import(arguments)
    return _export_whole(arguments) if arguments.format == "tfgrpo" else _export(arguments)


def _import(arguments: Namespace) -> int:
    given = arguments.config if arguments.config is not None or not DEFAULT_FILE.exists() else DEFAULT_FILE
    grouping = read(given).get("grouping") or {}
    ignore = tuple(re.compile(text) for text in grouping.get("ignore", IGNORED_BY_DEFAULT))
    placing = Placing(arguments.app, arguments.set, ignore=ignore, system=grouping.get("system", True))
    with opened(configuration(arguments, "store"), migrate=True) as store:
        done = files.take(
            store, arguments.file, arguments.format, placing=placing, app=arguments.app, set_name=arguments.set
        )
    for number, reason in done.unfit[:MOST_NAMED]:
        note(f"{arguments.file}, line {number}: {reason}")
    if len(done.unfit) > MOST_NAMED:
        note(f"... and {len(done.unfit) - MOST_NAMED} more lines that do not fit")
    if not done.exchanges:
        raise UsageError(
            f"{arguments.file} holds no exchange that can be taken as {arguments.format}; nothing is stored"
        )
    if arguments.json:
        emit({**asdict(done), "unfit": [{"line": number, "reason": reason} for number, reason in done.unfit]})
    else:
        say(
            f"{done.exchanges} exchanges, {done.new} of them new; {done.labels} labels, {done.new_labels} of them new; "
            f"{len(done.unfit)} lines left out. Next: `tfgrpo groups --set {arguments.set}`"
        )
    return 0


def _export_whole(arguments: Namespace) -> int:
    with opened(configuration(arguments, "store")) as store:
        found = list(ours.lines(store, set_name=arguments.set, unnamed=False))
        _say_withdrawn(store, arguments.set)
    write("".join(f"{line}\n" for line in found), arguments.output)
    note(f"{len(found)} trajectories" + (f" in {arguments.output}" if arguments.output else ""))
    return 0


def _export(arguments: Namespace) -> int:
    """Write the examples; what is left out is counted on stderr."""
    settings = configuration(arguments, "store")
    with opened(settings) as store:
        _, unnamed = census.of_set(store, arguments.set)
        if unnamed:
            note(census.unrecorded(arguments.set))
        _say_withdrawn(store, arguments.set, unnamed=unnamed)
        found = examples(
            store,
            set_name=None if unnamed else arguments.set,
            unnamed=unnamed,
            min_reward=arguments.min_reward,
            ours=settings.secrets,
        )
    left = "; ".join(f"{count} {reason}" for reason, count in found.left_out.items())
    if not found.lines:
        raise Conflict(f"no rollout can be training data: {left or 'none is labelled; POST /v1/feedback labels one'}")
    write("".join(f"{line}\n" for line in found.lines), arguments.output)
    where = f" in {arguments.output}" if arguments.output else ""
    hidden = f", {found.redacted} of them with a placeholder for a secret or a personal datum" if found.redacted else ""
    note(f"{len(found.lines)} examples{where}{hidden}" + (f"; left out: {left}" if left else ""))
    return 0


def _say_withdrawn(store: Store, set_name: str | None, *, unnamed: bool = False) -> None:
    """Say how much of a set's traffic, and of that under no set (`unnamed`), an export leaves out as withdrawn."""
    count = store.learnable.withdrawn(set_name=set_name)
    count += store.learnable.withdrawn(unnamed=True) if unnamed else 0
    if count:
        note(f"left out, for they were withdrawn: {count} trajectories")
