"""How many wrong admin keys one address may show before it has to wait. It knows addresses and times, no keys."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_WRONG: Final = 10
SECONDS: Final = 60.0
MOST_ADDRESSES: Final = 1000
"""Beyond this many the one that was wrong longest ago is forgotten: memory is bounded, whoever comes."""


class Attempts:
    """Wrong keys by address, in one worker. While an address waits, its keys are not looked at, right or wrong."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Return the seconds that an address has to wait, 0 if it may show a key."""
        wrong = self._recent(address)
        return 0.0 if len(wrong) < MOST_WRONG else wrong[0] + SECONDS - self._clock()

    def failed(self, address: str) -> None:
        """Count a wrong key."""
        self._wrong[address] = [*self._recent(address), self._clock()]
        self._wrong.move_to_end(address)
        if len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)

    def _recent(self, address: str) -> list[float]:
        return [at for at in self._wrong.get(address, ()) if at > self._clock() - SECONDS]
