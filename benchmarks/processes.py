"""Other processes: started on a core of their own, and what /proc and the kernel's clocks say of them. Linux only."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

GRACE = 20.0
"""Seconds that a process gets to end when asked to."""


@dataclass(frozen=True, slots=True)
class Cores:
    """Where things run: `load` for the load generator with the upstream, `target` for what is measured.

    On a machine of one core both are that one, and rates mean little.
    """

    load: int
    target: int

    @classmethod
    def of_this_machine(cls) -> Cores:
        """Take the first and the last core this process may use."""
        allowed = sorted(os.sched_getaffinity(0))
        return cls(allowed[0], allowed[-1])

    @contextmanager
    def for_target(self) -> Iterator[None]:
        """Start processes in the block: they inherit the target's core."""
        os.sched_setaffinity(0, {self.target})
        try:
            yield
        finally:
            os.sched_setaffinity(0, {self.load})


@contextmanager
def running(
    arguments: list[str], log: Path, cores: Cores, environment: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Run a program on the target's core while the block runs; yields its process id."""
    with log.open("ab") as output:
        with cores.for_target():
            process = subprocess.Popen(  # noqa: S603 - named by whoever runs the benchmark
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=log.parent
            )
        try:
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *[one for child in children for one in family(int(child))]]
    return []


def cpu_seconds(pid: int) -> float:
    """Return the CPU time, user and system, of every thread of a process and its descendants.

    By each process's own clock (clock_getcpuclockid, POSIX): to the nanosecond, where /proc counts in ticks of 10 ms.
    """
    return sum(time.clock_gettime((~one << 3) | 2) for one in family(pid))


def memory(pid: int) -> float:
    """Return the resident memory of a process and its descendants, in MiB."""
    return sum(_status(one)["VmRSS"] for one in family(pid)) / 1024


def peak_memory(pid: int) -> float:
    """Return the most resident memory that a process and its descendants have had, in MiB."""
    return sum(_status(one)["VmHWM"] for one in family(pid)) / 1024


def threads(pid: int) -> int:
    """Return how many threads a process has."""
    return _status(pid)["Threads"]


def open_files(pid: int) -> int:
    """Return how many file descriptors a process holds."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _status(pid: int) -> dict[str, int]:
    lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
