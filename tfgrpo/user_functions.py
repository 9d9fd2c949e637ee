"""Finding a function that a user wrote, by its module and name. It does not know what the function is for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any


class Unloadable(Exception):  # noqa: N818 - reads as what it says where it is caught
    """There is no such function, or its module cannot be imported. The message says which, in one line."""


def find(module: str, function: str) -> Any:
    """Import a module, also from the working directory, and return what it has under a name.

    Raises:
        Unloadable: that fails.
    """
    # It usually lies beside the data; a console script does not look there by itself.
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), function)
    except Exception as error:  # what importing a user's module raises cannot be known
        raise Unloadable(" ".join(f"{type(error).__name__}: {error}".split())) from error
