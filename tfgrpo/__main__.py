"""The command line `tfgrpo`: finds the command, and turns each failure into one line and an exit code."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Final

from tfgrpo.commands.arguments import parser
from tfgrpo.errors import BudgetExceeded, DatasetError, TfgrpoError, UsageError

FAILED: Final = 1
WRONG_USAGE: Final = 2
OVER_BUDGET: Final = 3
INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = parser().parse_args(argv)
    if argv is None:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        # By name: a command's libraries take longer to load than most commands take to run.
        return int(importlib.import_module(f"tfgrpo.commands.{arguments.command}").run(arguments))
    except TfgrpoError as error:
        return _say(str(error), _code(error))
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output is gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - the outermost edge: one line, never a traceback
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = f"a defect, please report it: {type(error).__name__}: {error} ({place.filename}, line {place.lineno})"
        return _say(said, FAILED)


def _code(error: TfgrpoError) -> int:
    if isinstance(error, BudgetExceeded):
        return OVER_BUDGET
    return WRONG_USAGE if isinstance(error, UsageError) and not isinstance(error, DatasetError) else FAILED


def _say(text: str, code: int) -> int:
    sys.stderr.write(f"tfgrpo: {' '.join(text.split())}\n")
    return code


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
