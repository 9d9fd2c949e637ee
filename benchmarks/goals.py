"""The targets of the project and how far a run reached them. Pure.

Each compares this proxy with one peer inside one run: CPU by process time, per request or per chunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

from benchmarks.results import Results

OURS: Final = "this proxy"
UNRECORDED: Final = "this proxy, not recording"

Verdict = Literal["wanted", "required", "missed", "not measured"]


@dataclass(frozen=True, slots=True)
class Goal:
    """`value` of this proxy in a case, as a multiple of the peer's; `peer` None: as it is.

    At most `required`, better `wanted`; with `least` True at least.
    """

    case: str
    what: str
    peer: str | None
    value: str
    required: float
    wanted: float | None = None
    least: bool = False

    def reached(self, results: Results) -> float | None:
        """Return what this run reached; None when one of both was not measured."""
        if self.peer is not None:
            return results.ratio(self.case, OURS, self.peer, self.value)
        middle = results.middle(self.case, OURS, self.value)
        return middle.value if middle else None

    def verdict(self, reached: float | None) -> Verdict:
        """Say which of its two values was reached."""
        if reached is None or math.isnan(reached):
            return "not measured"
        if self.wanted is not None and self._holds(reached, self.wanted):
            return "wanted"
        return "required" if self._holds(reached, self.required) else "missed"

    def _holds(self, reached: float, bound: float) -> bool:
        return reached >= bound if self.least else reached <= bound


_CPU: Final = "CPU a request"

GOALS: Final[tuple[Goal, ...]] = (
    Goal("1KB", _CPU, "LiteLLM", "cpu", 1 / 30, 1 / 60),
    Goal("1KB", _CPU, "Portkey", "cpu", 1 / 5, 1 / 8),
    Goal("1KB", _CPU, "nginx", "cpu", 15, 8),
    Goal("1KB", "recording's share of the CPU", None, "recording", 0.2),
    Goal("16KB", _CPU, "LiteLLM", "cpu", 1 / 20, 1 / 40),
    Goal("16KB", _CPU, "Portkey", "cpu", 1 / 4, 1 / 6),
    Goal("16KB", _CPU, "nginx", "cpu", 20, 10),
    Goal("256KB", _CPU, "LiteLLM", "cpu", 1 / 7, 1 / 12),
    Goal("256KB", _CPU, "Portkey", "cpu", 1 / 3, 1 / 5),
    Goal("256KB", _CPU, "nginx", "cpu", 20),
    Goal("latency", "added p50", "LiteLLM", "added_p50", 1 / 20, 1 / 40),
    Goal("latency", "added p50", "Portkey", "added_p50", 1 / 4, 1 / 6),
    Goal("latency", "added p50", "nginx", "added_p50", 4, 2.5),
    Goal("latency", "added p50, ms", None, "added_p50", 0.6, 0.4),
    Goal("unpaced", "ceiling of chunks/s", "LiteLLM", "rate", 8, least=True),
    Goal("paced", "CPU a chunk", "Portkey", "cpu", 0.6),
    Goal("paced", "CPU a chunk", "nginx", "cpu", 2, 1.5),
    Goal("1000", "share of streams complete", None, "complete", 1, least=True),
    Goal("1000", "rate", "nginx", "rate", 0.85, least=True),
)


def derive(results: Results) -> None:
    """Add to each round what is a difference between two targets: added latency, and recording's share of the CPU."""
    for targets in results.rounds.values():
        pairs = chain.from_iterable(zip(rounds, targets.get("direct", ()), strict=False) for rounds in targets.values())
        for values, direct in pairs:
            values["added_p50"] = values["p50"] - direct["p50"]
            values["added_p99"] = values["p99"] - direct["p99"]
    alone = results.rounds.get("1KB", {})
    for with_it, without in zip(alone.get(OURS, ()), alone.get(UNRECORDED, ()), strict=False):
        with_it["recording"] = 1 - without["cpu"] / with_it["cpu"]
