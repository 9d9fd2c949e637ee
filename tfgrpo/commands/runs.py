"""`tfgrpo runs`: the training runs of a store."""

from __future__ import annotations

import dataclasses
import json
import time
from argparse import Namespace

from tfgrpo import report
from tfgrpo.commands.output import emit, note, say, write
from tfgrpo.commands.session import configuration, opened
from tfgrpo.store import Run


def run(arguments: Namespace) -> int:
    """List the runs, or show one."""
    with opened(configuration(arguments, "store")) as store:
        one = arguments.action in ("show", "report")
        found = [store.runs.run(arguments.id)] if one else store.runs.list(arguments.set)
    if arguments.action == "report":
        _report(found[0], arguments)
    elif arguments.action == "show":
        _show(found[0], as_json=arguments.json)
    elif arguments.json:
        emit([dataclasses.asdict(one) for one in found])
    else:
        say("\n".join(map(_line, found)) or "no run yet: `tfgrpo train --set NAME` starts one")
    return 0


def _report(found: Run, arguments: Namespace) -> None:
    output = arguments.output
    page = output is not None and output.suffix in (".html", ".htm")
    form = arguments.format or ("html" if page else "markdown")
    write(report.WRITERS[form](found), output)
    if output is not None:
        note(f"the report of run {found.id} is in {output}")


def _show(found: Run, *, as_json: bool) -> None:
    if as_json:
        emit(dataclasses.asdict(found))
        return
    say(_line(found))
    for title, values in (("arguments", found.arguments), ("progress", found.progress), ("result", found.result)):
        say(f"{title}: {json.dumps(dict(values), ensure_ascii=False, indent=2)}")


def _line(one: Run) -> str:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.started_at))
    took = f", {one.ended_at - one.started_at:.0f} s" if one.ended_at is not None else ""
    version = one.result.get("version")
    return f"{one.id}: set {one.set}, {one.status}, started {started}{took}" + (
        f", made version {version}" if version else ""
    )
