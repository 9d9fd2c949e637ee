"""Progress on stderr: on a terminal one line a stage, elsewhere a line where a stage begins and where it ends."""

from __future__ import annotations

import sys
from typing import Any, Final, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from tfgrpo.usage import Ledger, Usage, money

_BAR: Final = 16
"""Columns of the bar."""


class Progress:
    """Shows stages with their calls, tokens and money. Use as a context manager; it is a trainer's `Listener`.

    A stage that begins again, for the next batch, goes on in its line.
    """

    def __init__(self, ledger: Ledger, stream: TextIO | None = None) -> None:
        self._ledger = ledger
        self._stream = stream or sys.stderr
        self._stage = ""
        self._done = 0
        self._total = 0
        self._stages: dict[str, list[int]] = {}
        self._lines: dict[str, TaskID] = {}
        self._bar = Bar(
            TextColumn("{task.description:<11}"),
            BarColumn(_BAR),
            MofNCompleteColumn(),
            # One line a stage, also on a narrow terminal.
            TextColumn("{task.fields[spent]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=Console(file=self._stream),
            disable=not self._stream.isatty(),
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, stage: str, total: int) -> None:
        """A stage with so many calls begins, or begins again."""
        self._stage, self._done, self._total = stage, 0, total
        self._stages.setdefault(stage, [0, 0])[1] += total
        if self._bar.disable:
            self._write(f"{stage}: {total} to do")
        elif stage in self._lines:
            line = self._lines[stage]
            self._bar.update(line, total=(self._bar.tasks[line].total or 0) + total)
        else:
            self._lines[stage] = self._bar.add_task(stage, total=total, spent="")

    def advance(self, stage: str) -> None:
        """One call of the stage ended."""
        self._done += 1
        self._stages.setdefault(stage, [0, 0])[0] += 1
        if stage in self._lines:
            used = self._ledger.stages().get(stage, Usage())
            self._bar.update(self._lines[stage], advance=1, spent=_spent(used))
        elif self._done == self._total:
            self._write(f"{stage}: {self._done} of {self._total} done; {self.spent()}")

    def spent(self) -> str:
        """Return what was used so far."""
        return _spent(self._ledger.total())

    def snapshot(self) -> dict[str, Any]:
        """Return how far it is, for the store."""
        total = self._ledger.total()
        spent = {"calls": total.calls, "replayed": total.replayed, "tokens": total.tokens, "usd": total.usd}
        stages = [self._told(stage, done, total) for stage, (done, total) in list(self._stages.items())]
        return {"stage": self._stage, "done": self._done, "total": self._total, **spent, "stages": stages}

    def _told(self, stage: str, done: int, total: int) -> dict[str, Any]:
        used = self._ledger.stages().get(stage, Usage())
        return {"stage": stage, "done": done, "total": total, "tokens": used.tokens, "usd": used.usd}

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _spent(used: Usage) -> str:
    again = f" ({used.replayed} more replayed)" if used.replayed else ""
    return f"{used.calls} calls{again}, {used.tokens} tokens, {money(used.usd)}"
