from __future__ import annotations

import io
import re

from tfgrpo.commands.progress import Progress
from tfgrpo.usage import Ledger, Usage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO) -> list[str]:
    ledger = Ledger()
    with Progress(ledger, stream) as progress:
        for _ in range(2):
            for stage in ("rollout", "contrast"):
                progress.begin(stage, 1)
                ledger.add(stage, Usage(1, 0, 10, 5, 0.25))
                progress.advance(stage)
    return stream.getvalue().splitlines()


def test_a_terminal_shows_one_line_a_stage_that_goes_on_with_each_batch() -> None:
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in shown(Terminal())[-3:-1]]
    assert [(line.split()[0], "2/2" in line, "2 calls, 30 tokens, $0.5000" in line) for line in lines] == [
        ("rollout", True, True),
        ("contrast", True, True),
    ]


def test_elsewhere_a_line_says_that_a_stage_begins_and_one_that_it_ended() -> None:
    assert shown(io.StringIO())[:2] == ["rollout: 1 to do", "rollout: 1 of 1 done; 1 calls, 15 tokens, $0.2500"]
