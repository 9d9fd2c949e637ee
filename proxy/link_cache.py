"""The links of this worker's recent exchanges, in bounded memory: where most later turns find their parent.

It holds what was put in and evicts what was not asked for the longest. It knows nothing of the store or of time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from tfgrpo.types import Assignment

MOST_OF_ONE_KEY = 32
"""Exchanges that share a key are twins (the same task, the same answer); so many wait for their next turn at most."""


@dataclass(slots=True)
class Node:
    """An exchange that a later request may continue. Shared by all keys it stands under.

    `taken`: one does already. `system` is the mark of its system texts.
    """

    exchange: str
    assignment: Assignment
    at: float
    taken: bool = False
    system: str = ""

    @property
    def lost(self) -> bool:
        """Whether its trajectory continues something that was not found when it began."""
        return self.assignment.arm == "unknown"


class LinkCache:
    """Nodes by link key, at most `size` of them."""

    def __init__(self, size: int = 50_000) -> None:
        self._most = size
        self._size = 0
        # Tuples: nearly all keys have one node, and a list or a dictionary around it weighs more than itself.
        self._nodes: OrderedDict[str, tuple[Node, ...]] = OrderedDict()

    def __len__(self) -> int:
        return self._size

    def find(self, key: str) -> Sequence[Node]:
        """Return the nodes under a key, the oldest first."""
        nodes = self._nodes.get(key)
        if nodes is None:
            return ()
        self._nodes.move_to_end(key)
        return nodes

    def add(self, key: str, node: Node) -> None:
        """Put a node under a key beside those that stand there; the same exchange stands there once."""
        nodes = self._nodes.get(key, ())
        if nodes and any(known.exchange == node.exchange for known in nodes):
            return
        if len(nodes) >= MOST_OF_ONE_KEY:
            out = next((place for place, known in enumerate(nodes) if known.taken), 0)
            nodes = nodes[:out] + nodes[out + 1 :]
            self._size -= 1
        self._nodes[key] = (*nodes, node)
        self._size += 1
        self._shrink(key)

    def replace(self, key: str, node: Node) -> None:
        """Put a node under a key instead of all that stand there."""
        self._size += 1 - len(self._nodes.get(key, ()))
        self._nodes[key] = (node,)
        self._shrink(key)

    def _shrink(self, key: str) -> None:
        self._nodes.move_to_end(key)
        while self._size > self._most:
            _, nodes = self._nodes.popitem(last=False)
            self._size -= len(nodes)
