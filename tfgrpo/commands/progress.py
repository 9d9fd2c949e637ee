"""Progress on stderr: a bar on a terminal, elsewhere a line where a stage begins and where it ends."""

from __future__ import annotations

import sys
from typing import Any, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

from tfgrpo.usage import Ledger, money


class Progress:
    """Shows stages with calls, tokens and money so far. Use as a context manager; it is a trainer's `Listener`."""

    def __init__(self, ledger: Ledger, stream: TextIO | None = None) -> None:
        self._ledger = ledger
        self._stream = stream or sys.stderr
        self._stage = ""
        self._done = 0
        self._total = 0
        self._task: TaskID | None = None
        self._bar = Bar(
            TextColumn("{task.description:<11}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[spent]}"),
            console=Console(file=self._stream),
            disable=not self._stream.isatty(),
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, stage: str, total: int) -> None:
        """A stage with so many calls begins."""
        self._stage, self._done, self._total = stage, 0, total
        if self._bar.disable:
            self._write(f"{stage}: {total} to do")
        else:
            self._task = self._bar.add_task(stage, total=total, spent=self.spent())

    def advance(self, stage: str) -> None:
        """One call of the stage ended."""
        self._done += 1
        if self._task is not None:
            self._bar.update(self._task, advance=1, spent=self.spent())
        elif self._done == self._total:
            self._write(f"{stage}: {self._done} of {self._total} done; {self.spent()}")

    def spent(self) -> str:
        """Return what was used so far."""
        total = self._ledger.total()
        again = f" ({total.replayed} more replayed)" if total.replayed else ""
        return f"{total.calls} calls{again}, {total.tokens} tokens, {money(total.usd)}"

    def snapshot(self) -> dict[str, Any]:
        """Return how far it is, for the store."""
        total = self._ledger.total()
        spent = {"calls": total.calls, "replayed": total.replayed, "tokens": total.tokens, "usd": total.usd}
        return {"stage": self._stage, "done": self._done, "total": self._total, **spent}

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()
