"""`make compare`: learners side by side on the simulated provider, seed by seed, on two processes.

Progress goes to standard error, the report as Markdown to standard output. `--rows FILE` keeps every number as it
comes, and `--report FILE` makes the report of such a file: what a run that was stopped had finished is not lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Final

from benchmarks.learning.learners import BUDGET, TASKS, TRAINING
from benchmarks.learning.run import FRESH_SAMPLES, FRESH_TASKS, run
from benchmarks.learning.settings import SETTINGS
from benchmarks.learning.summary import Row, finished, found, markdown
from tfgrpo.assembly import batch_size
from tfgrpo.recipe import RECIPES

FIRST: Final = 100_000
"""The first seed that is reported: the learner was developed on lower ones only."""
ROOT: Final = Path(__file__).parents[2]
SIMULATOR, LEARNER = "tfgrpo/simulation", "tfgrpo"
"""The paths whose last commits are told."""


def one(setting: int, seed: int) -> Row:
    """Return the row of one setting and seed."""
    return asyncio.run(run(SETTINGS[setting], seed))


def main() -> None:
    """Run, and print what came of it."""
    arguments = _arguments()
    if arguments.report is not None:
        rows = finished([json.loads(line) for line in arguments.report.read_text().splitlines()])
    else:
        rows = _rows(arguments)
    sys.stdout.write(report(rows))


def report(rows: Sequence[Row]) -> str:
    """Return tables and targets, and what they were made with."""
    if not rows:
        return "No seed is finished in all settings.\n"
    seeds = sorted({row["seed"] for row in rows})
    simulators, learners = ({row[part] for row in rows} for part in (SIMULATOR, LEARNER))
    return (
        f"{len(seeds)} seeds, {seeds[0]} to {seeds[-1]}; simulator at commit {', '.join(sorted(simulators))}, "
        f"learner at {', '.join(sorted(learners))}. {TASKS} tasks, {BUDGET} policy calls, G {TRAINING.group_size}, "
        f"our batch size {batch_size(TRAINING, RECIPES['ours'])}; reward is the mean on {FRESH_TASKS} fresh tasks "
        f"times {FRESH_SAMPLES}.\n\n{markdown(found(rows))}"
    )


def _rows(arguments: argparse.Namespace) -> list[Row]:
    """Run every seed in every setting. Each row says which commits made it."""
    jobs = [(setting, arguments.first + seed) for seed in range(arguments.seeds) for setting in range(len(SETTINGS))]
    began, commits = time.monotonic(), {path: _commit(path) for path in (SIMULATOR, LEARNER)}
    rows: list[Row] = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for done in as_completed([pool.submit(one, *job) for job in jobs]):
            rows.append(done.result() | commits)
            _keep(rows[-1], arguments.rows)
            _tell(f"\r{len(rows)} of {len(jobs)} after {time.monotonic() - began:.0f} s")
    _tell("\n")
    return rows


def _keep(row: Row, path: Path | None) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make compare", description="Compare learners on the simulated provider.")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds; each is run in every setting")
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="a file that each row is appended to as JSON")
    parser.add_argument("--report", type=Path, help="run nothing: report the finished seeds of such a file")
    return parser.parse_args()


def _commit(path: str) -> str:
    """Return the last commit that touched a path, with a `+` where it was changed since."""
    log = _git("log", "-1", "--format=%h", "--", path)
    return log + ("+" if _git("status", "--porcelain", "--", path) else "") if log else "unknown"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607 - fixed arguments
    except OSError:
        return ""
    return done.stdout.strip()


def _tell(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    main()
