"""How much one of several may count for: a share of the whole, whatever they bring along. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

_ROUNDING = 1e-9


def ceiling(counts: Collection[int], share: float) -> int:
    """Return the most that one of `counts` may count for, so that it is at most `share` of what all then count for.

    Where there are fewer than 1/share of them, equal parts are the most that can be asked: the smallest of the counts
    bounds them all. At least 1; `counts` must not be empty.
    """
    allowed = max(share, 1 / len(counts))
    low, high = 1, max(counts)
    # What one may have beside the others falls behind what it asks for once and for all: the sum is concave in it.
    while low < high:
        middle = (low + high + 1) // 2
        if middle <= allowed * sum(min(count, middle) for count in counts) + _ROUNDING:
            low = middle
        else:
            high = middle - 1
    return low


def weights(makers: Sequence[str], share: float) -> list[float] | None:
    """Return what each of some judgements weighs, by who makes them; None: all alike."""
    counts = Counter(makers)
    most = ceiling(counts.values(), share)
    if most >= max(counts.values()):
        return None
    return [min(1.0, most / counts[maker]) for maker in makers]
