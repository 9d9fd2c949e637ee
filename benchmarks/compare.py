"""`make bench`: this proxy beside what it is compared with, in one interleaved run.

In each case every round visits every target in turn, so that what the machine does meanwhile falls on all alike.
Progress goes to standard error, the report as Markdown to standard output.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.bodies import Requests
from benchmarks.cases import CASES, Case
from benchmarks.goals import derive
from benchmarks.load import LoadError, closed, streams
from benchmarks.processes import Cores, memory, peak_memory
from benchmarks.report import markdown
from benchmarks.results import Results
from benchmarks.targets import INSTALL, KEY, PEERS, Place, Target, bypassed, ours, unrecorded
from benchmarks.upstream import Upstream

ROUNDS: Final = 3
READY_SECONDS: Final = 60.0
WARM_SECONDS: Final = 4.0
"""Long enough for Node to have compiled what it runs: before, Portkey's gateway uses half as much CPU again."""

SLOW_SECONDS: Final = 8.0
"""A target whose first round of a case took longer is not measured again in that case."""

VARIANTS_CASE: Final = "1KB"
"""Where this proxy without recording, and as a pure relay, are measured too."""

OPEN_FILES: Final = 20_000


def tell(text: str) -> None:
    """Say what is being done."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a program's progress


async def ready(target: Target, requests: Requests) -> None:
    """Wait until a target answers.

    Raises:
        LoadError: It did not within a minute.
    """
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        (seen,) = (await streams(target.port, requests, 1, over=0.0)).seen
        if seen.status == 200 and seen.whole:  # noqa: PLR2004 - OK
            return
        await asyncio.sleep(0.1)
    raise LoadError(f"{target.name} did not answer with 200 within {READY_SECONDS:g} s; the last was {seen.status}")


class Comparison:
    """One run: its targets, started and warm, and what it has measured so far."""

    def __init__(self, upstream: Upstream, targets: list[Target], variants: list[Target]) -> None:
        self._upstream = upstream
        self._targets = targets
        self._variants = variants
        self.results = Results()

    async def warm(self) -> None:
        """Wait for every target and let it see some requests."""
        for target in [*self._targets, *self._variants]:
            requests = Requests(1024, key=KEY, headers=target.headers)
            await ready(target, requests)
            idle = memory(target.pid) if target.pid is not None else 0.0
            self.results.memory[target.name] = {"idle": idle}
            tell(f"{target.name} {target.version} is ready")
            if target.name == "this proxy":
                tell(f"  a request of 1,024 bytes reaches the upstream with {self._upstream.body_bytes:,}")
            await closed(target.port, requests, WARM_SECONDS, 16)

    async def run(self, case: Case, rounds: int) -> None:
        """Measure a case: round after round, each target in turn."""
        tell(f"{case.name}: {case.what}")
        left = [*self._targets, *(self._variants if case.name == VARIANTS_CASE else ())]
        for number in range(rounds):
            for target in list(left):
                started = time.monotonic()
                values = await case.measure(target, self._upstream)
                self.results.add(case.name, target.name, values)
                unit = "us/chunk" if "complete" in values else "ms/request"
                tell(
                    f"  {number + 1} {target.name:26}{values['rate']:10,.0f}/s  CPU {values['cpu']:9.3f} {unit:11}"
                    f"p50 {values['p50']:9.2f} ms"
                )
                if time.monotonic() - started > SLOW_SECONDS:
                    left.remove(target)

    def finish(self) -> Results:
        """Read the memory after all and return what was measured."""
        for target in [*self._targets, *self._variants]:
            if target.pid is None:
                del self.results.memory[target.name]
                continue
            seen = self.results.memory[target.name]
            seen |= {"after the run": memory(target.pid), "most": peak_memory(target.pid)}
        derive(self.results)
        return self.results


async def compare(options: argparse.Namespace) -> int:
    """Start everything, measure, report."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, max(OPEN_FILES, _hard_limit())))
    cores = Cores.of_this_machine()
    os.sched_setaffinity(0, {cores.load})
    cases = [case.shortened() if options.quick else case for case in CASES if case.name in (options.only or _NAMES)]
    started, upstream = time.monotonic(), Upstream()
    with tempfile.TemporaryDirectory(prefix="tfgrpo-bench-") as folder, ExitStack() as stack:
        async with upstream.listening():
            place = Place(Path(folder), cores, upstream.port)
            targets = _start(place, options, stack)
            variants = []
            if VARIANTS_CASE in [case.name for case in cases]:
                variants = [stack.enter_context(start(place)) for start in (unrecorded, bypassed)]
            run = Comparison(upstream, targets, variants)
            await run.warm()
            for case in cases:
                await run.run(case, 1 if options.quick else options.rounds)
            results = run.finish()
    about = _about(targets, options, time.monotonic() - started)
    sys.stdout.write(markdown(results, cases, about))
    if options.json:
        options.json.write_text(json.dumps({"about": about, **asdict(results)}, indent=1) + "\n")
    return 0


def _start(place: Place, options: argparse.Namespace, stack: ExitStack) -> list[Target]:
    """Start this proxy and every peer that is named; say of each other one how to install it."""
    targets = [Target("direct", "", place.upstream, None), stack.enter_context(ours(place))]
    for name, start in PEERS.items():
        program = getattr(options, name.lower())
        if program:
            targets.append(stack.enter_context(start(place, program)))
        else:
            tell(f"{name} is not measured. To install it: {INSTALL[name]}")
    return targets


_NAMES: Final = tuple(case.name for case in CASES)


def _about(targets: list[Target], options: argparse.Namespace, seconds: float) -> dict[str, str]:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = models[0].partition(":")[2].strip() if models else platform.machine()
    versions = [f"{target.name} {target.version}" for target in targets if target.version]
    rounds = "one short round (--quick)" if options.quick else f"{options.rounds} rounds"
    machine = [processor, f"{os.cpu_count()} cores", f"Linux {platform.release()}"]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": ", ".join(machine),
        "versions": ", ".join([*versions, f"Python {platform.python_version()}"]),
        "measured": f"{rounds} in {seconds:.0f} s; the median, with the least and the most in brackets",
    }


def _hard_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description="Compare this proxy with others on this machine.")
    parser.add_argument("--quick", action="store_true", help="one short round: to see that it runs, not to quote")
    parser.add_argument("--only", action="append", choices=_NAMES, metavar="CASE", help=f"{', '.join(_NAMES)}; repeat")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each target is visited ({ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round there")
    found = {"nginx": os.environ.get("NGINX", shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin"))}
    for name in PEERS:
        default = found.get(name, os.environ.get(name.upper()))
        parser.add_argument(f"--{name.lower()}", metavar="PROGRAM", default=default, help=f"{name}'s program")
    return parser


def main() -> int:
    """Read the command line and run."""
    try:
        return uvloop.run(compare(_parser().parse_args()))
    except LoadError as error:
        tell(f"bench: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
