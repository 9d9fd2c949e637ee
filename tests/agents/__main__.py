"""Install the programs, run each direct and through the proxy, compare, and print a table of what was seen.

What is the same: exit status, output, and what the upstream received outside the lessons. Ids and times that a program
makes up on each run are blanked. A program that cannot be installed is left out and said; one that differs fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy import injection
from proxy.settings import Settings
from tests.agents import coder
from tests.agents.programs import KEY, PROGRAMS, Place, Program
from tests.conftest import RunningProxy
from tests.upstreams import RawUpstream, Seen
from tfgrpo import library

FOLDER = Path(".venv/agents")
PATIENCE = 240
LESSONS = ("Check the units.", 'Say "four" in words.')
BLOCK = library.render(library.from_texts(LESSONS), name="agents", version=1)
DIALECTS = {"/v1/chat/completions": "chat", "/v1/responses": "responses"}
DIALECTS |= {"/v1/messages": "messages", "/v1/messages/count_tokens": "messages"}
MADE_UP = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|Chunk ID: \w+|Wall time: [\d.]+|\bcall_[0-9a-f]{20}"
    rb"|unix_ms\W+\d+|id\W+[0-9a-f]{64}|run-[\w/.-]+|\bses_\w+|\b\d+\.\d+ ?s(?:econds)?\b|:\d{2,5}/v1"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run showed: to its user and to the upstream."""

    status: int
    out: bytes
    error: bytes
    seen: list[Seen]


def main() -> None:
    """Install, run, compare, print."""
    parser = argparse.ArgumentParser(prog="make agents", description=__doc__)
    parser.add_argument("--only", action="append", choices=[one.name for one in PROGRAMS])
    only = parser.parse_args().only or [one.name for one in PROGRAMS]
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = [_tried(one) for one in PROGRAMS if one.name in only]
    _say("\n| program | versions | requests | trajectories | direct and through the proxy |\n|---|---|---|---|---|")
    for row in rows:
        _say(f"| {' | '.join(row)} |")
    if any("differs" in row[-1] for row in rows):
        sys.exit(1)


def _tried(program: Program) -> list[str]:
    _say(f"agents: {program.name}: installing {', '.join(program.packages)}")
    versions = _install(program)
    if versions is None:
        return [program.name, "", "", "", "cannot be installed here"]
    _say(f"agents: {program.name}: {versions}; direct, then through the proxy")
    with RawUpstream(coder.speaks) as upstream:
        direct = _run(program, f"http://127.0.0.1:{upstream.port}", upstream)
    with RawUpstream(coder.speaks) as upstream, tempfile.TemporaryDirectory() as made:
        proxy = _proxy(upstream, Path(made))
        through = _run(program, f"http://127.0.0.1:{proxy.port}", upstream)
        recorded = [one for one in proxy.recorded() if one.dialect]
    found = _differences(direct, through)
    for one in found:
        _say(f"agents: {program.name}: {one[:400]}")
    turns = [one for one in recorded if one.trajectory]
    lines = len({one.trajectory for one in turns})
    return [program.name, versions, str(len(turns)), str(lines), f"differs: {found[0][:80]}" if found else "the same"]


def _install(program: Program) -> str | None:
    """Install the newest versions and return them; None when that fails."""
    if program.pip:
        home = FOLDER / program.name
        uv = [".venv/bin/uv", "pip"]
        at = ["--quiet", "--python", str(home / "bin/python")]
        steps = [[sys.executable, "-m", "venv", str(home)], [*uv, "install", *at, *program.packages]]
    else:
        if shutil.which("npm") is None:
            return None
        steps = [["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER), *program.packages]]
    for words in steps:
        if subprocess.run(words, check=False).returncode:  # noqa: S603 - fixed words
            return None
    return ", ".join(f"{name} {_version(program, name)}" for name in program.packages)


def _version(program: Program, name: str) -> str:
    if not program.pip:
        return str(json.loads((FOLDER / "node_modules" / name / "package.json").read_text())["version"])
    (found,) = (FOLDER / program.name).glob(f"lib/python*/site-packages/{name.replace('-', '_')}-*.dist-info")
    return found.name.split("-")[1].removesuffix(".dist")


def _proxy(upstream: RawUpstream, folder: Path) -> RunningProxy:
    values: dict[str, Any] = {"store": {"url": f"sqlite:///{folder}/s.db"}, "server": {"port": 0, "drain_seconds": 5}}
    values["upstreams"] = [{"name": "up", "base_url": upstream.base_url}]
    values["routes"] = [{"set": "agents", "models": ["*"]}]
    proxy = RunningProxy(Settings.model_validate(values))
    proxy.start()
    proxy.deploy("agents", *LESSONS)
    return proxy


def _run(program: Program, root: str, upstream: RawUpstream) -> Outcome:
    # The same paths for both runs: programs tell the model where they stand.
    room = FOLDER.resolve() / "room"
    shutil.rmtree(room, ignore_errors=True)
    place = Place(FOLDER.resolve(), room / "home", room / "work", root)
    for folder in (place.home, place.work, room / "tmp"):
        folder.mkdir(parents=True)
    run = program.run(place)
    plain = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "NO_PROXY": "*", "no_proxy": "*"}
    ended = subprocess.run(  # noqa: S603 - the programs of the table
        run.words,
        cwd=place.work,
        env={**plain, "HOME": str(place.home), "TMPDIR": str(room / "tmp"), **run.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr, list(upstream.seen))


def _differences(direct: Outcome, through: Outcome) -> list[str]:
    """Return what differs, each in a line, the first the most telling."""
    found = []
    if direct.status or through.status:
        found.append(f"exit {direct.status} direct, {through.status} through: {direct.error[-300:]!r}")
    if _blank(direct.out) != _blank(through.out):
        found.append(f"output {direct.out[-300:]!r} direct, {through.out[-300:]!r} through")
    # Programs ask several things at once, so the order is no matter.
    asked = Counter((one.line, _expected(one)) for one in _posted(direct.seen))
    came = Counter((one.line, _plain(one.body)) for one in _posted(through.seen))
    missing, strange = asked - came, came - asked
    found += [f"{line} only direct: {body[:3000]!r}" for line, body in missing]
    found += [f"{line} only through: {body[:3000]!r}" for line, body in strange]
    if any(KEY not in one.head.decode() for one in _posted(through.seen)):
        found.append("a request came without the program's own key")
    return found


def _posted(seen: list[Seen]) -> list[Seen]:
    return [one for one in seen if one.line.startswith("POST")]


def _expected(direct: Seen) -> bytes:
    """What the proxy must send for what was sent direct."""
    dialect = DIALECTS.get(direct.target.split("?")[0])
    return _plain(direct.body if dialect is None else injection.inject(direct.body, dialect, BLOCK) or direct.body)


def _plain(body: bytes) -> bytes:
    """A body to compare. One program draws the order of some keys anew each time: byte for byte is for other tests."""
    return json.dumps(json.loads(_blank(body)), sort_keys=True).encode()


def _blank(text: bytes) -> bytes:
    return MADE_UP.sub(b"X", text)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
