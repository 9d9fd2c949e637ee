"""This proxy without recording, to measure what recording costs: a program of the benchmark, never of the product.

The end of an exchange is dropped before the answer is read, and nothing reaches the writer. Everything else, placing
and injecting included, is as it is.
"""

from __future__ import annotations

import sys

from proxy.__main__ import main
from proxy.bookkeeping import Bookkeeper
from proxy.recording import Recorder


def _drop(*_: object, **__: object) -> None:
    """Take what is handed over and forget it."""


if __name__ == "__main__":
    # The product has no such switch, and needs none: this is the one place where it is taken apart.
    for owner, name in ((Bookkeeper, "close"), (Recorder, "put"), (Recorder, "put_link")):
        setattr(owner, name, _drop)
    sys.exit(main())
