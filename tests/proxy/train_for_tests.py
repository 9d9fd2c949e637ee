"""A program that stands where `tfgrpo` does: notes how it was called and, if a file `wait` is there, stays."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def main() -> int:
    folder = Path(sys.argv[1])
    with (folder / "calls").open("a") as calls:
        calls.write(" ".join(sys.argv[2:]) + "\n")
    if (folder / "wait").exists():
        (folder / "pid").write_text(str(os.getpid()))
        signal.pause()
    sys.stderr.write("nothing to learn from\n")
    return 3


if __name__ == "__main__":
    sys.exit(main())
