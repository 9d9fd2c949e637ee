"""`tfgrpo backup FILE`: a whole copy of SQLite's store, made while the proxy serves.

PostgreSQL has tools of its own for that, which do more than we could.
"""

from __future__ import annotations

from argparse import Namespace

from tfgrpo.commands.output import emit, say
from tfgrpo.commands.session import configuration, opened


def run(arguments: Namespace) -> int:
    """Write the copy, and say how large it is."""
    with opened(configuration(arguments, "store")) as store:
        store.backup(arguments.file)
    size = arguments.file.stat().st_size
    if arguments.json:
        emit({"file": str(arguments.file), "bytes": size})
    else:
        say(f"{arguments.file}: {size} bytes")
    return 0
