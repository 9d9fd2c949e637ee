"""Give memory back to the system after an unusual need of it. Python frees it; the C library may keep it for later."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Ask the C library for what it keeps; one that cannot (only glibc can) is left alone."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
