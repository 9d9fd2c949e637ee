"""From rows of all seeds to tables and targets: means over seeds with 95 percent intervals, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Any, Final, TypeAlias

from benchmarks.learning.learners import BUDGET, PAPER_BATCHES
from benchmarks.learning.settings import SETTINGS, Setting

Row: TypeAlias = dict[str, Any]

Z: Final = 1.96
SHARE_CLEAN, SHARE_BAD, WORTH = 0.9, 0.5, 0.1
LOWEST, WORSE_ON_CLEAN, HELPS_ON_NOTHING = -0.02, -0.03, 0.05
ON_THE_WAY: Final = 0.8


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds with its 95 percent interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def mean(values: Sequence[float]) -> Mean:
    """Return the mean of values, one a seed."""
    middle = fmean(values)
    half = Z * stdev(values) / sqrt(len(values)) if len(values) > 1 else inf
    return Mean(middle, middle - half, middle + half)


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one setting, in the order of seeds. The paper's recipe is taken at its best batch size."""

    setting: Setting
    rows: Sequence[Row]

    @property
    def paper(self) -> str:
        """The batch size at which the paper's recipe does best on the mean, as the learner's name."""
        return max((f"paper {size}" for size in PAPER_BATCHES), key=lambda name: fmean(self.rewards(name)))

    def rewards(self, name: str) -> list[float]:
        """Return what a learner's library is worth, for each seed."""
        return [row[name]["reward"] for row in self.rows]

    def gains(self, name: str, over: str = "none") -> list[float]:
        """Return by how much a learner beats another, for each seed."""
        return [a - b for a, b in zip(self.rewards(name), self.rewards(over), strict=True)]

    @property
    def helps(self) -> int:
        """How often the gate says `helps`."""
        return sum(row["ours"]["verdict"] == "helps" for row in self.rows)

    def rollouts(self, name: str) -> str:
        """Return after how many rollouts the mean library on the way has a given share of the oracle's gain."""
        base, gain = fmean(self.rewards("none")), fmean(self.gains("oracle"))
        if gain <= WORTH:
            return "-"
        steps = sorted({calls for row in self.rows for calls, _ in row[name]["path"]})
        for calls in steps:
            reached = [_at(row[name]["path"], calls, base) for row in self.rows]
            if fmean(reached) - base >= ON_THE_WAY * gain:
                return str(calls)
        return f"not in {steps[-1]}" if steps else "-"


def finished(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the seeds that have one in every setting: all settings are told of the same seeds."""
    settings = {seed: {row["setting"] for row in rows if row["seed"] == seed} for seed in {row["seed"] for row in rows}}
    return [row for row in rows if len(settings[row["seed"]]) == len(SETTINGS)]


def found(rows: Sequence[Row]) -> list[Found]:
    """Return the rows by setting."""
    ordered = sorted(rows, key=lambda row: row["seed"])
    return [
        Found(setting, some)
        for setting in SETTINGS
        if (some := [row for row in ordered if row["setting"] == setting.name])
    ]


def markdown(settings: Sequence[Found]) -> str:
    """Return the tables and what became of each target."""
    lines = [
        "| setting | none | guessed | paper (its best batch) | ours | oracle | `helps` |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in settings:
        means = [f"{fmean(one.rewards(name)):.3f}" for name in ("none", "guessed", one.paper, "ours", "oracle")]
        means[2] += f" ({one.paper.removeprefix('paper ')})"
        lines.append(f"| {' | '.join([one.setting.name, *means])} | {one.helps} of {len(one.rows)} |")
    lines += [
        "",
        "| setting | ours - none | of the oracle's gain | ours - paper | rollouts to 80 percent: ours, paper |",
        "|---|---|---|---|---|",
    ]
    for one in settings:
        gain, best = mean(one.gains("ours")), fmean(one.gains("oracle"))
        share = f"{gain.value / best:.2f} of {best:+.3f}" if best > WORTH else "-"
        reached = f"{one.rollouts('ours')}, {one.rollouts(one.paper)}"
        lines.append(f"| {one.setting.name} | {gain} | {share} | {mean(one.gains('ours', one.paper))} | {reached} |")
    return "\n".join([*lines, "", *(f"- {line}" for line in targets(settings)), ""])


def targets(settings: Sequence[Found]) -> list[str]:
    """Return one line for each target: whether it is met, and the numbers."""
    lines = []
    for one in settings:
        ours, best = mean(one.gains("ours")), fmean(one.gains("oracle"))
        lines.append(
            _line(ours.low > LOWEST, f"{one.setting.name}: lower bound of ours - none {ours.low:+.3f} > {LOWEST}")
        )
        if best > WORTH:
            least = SHARE_BAD if one.setting.bad else SHARE_CLEAN
            share = ours.value / best
            lines.append(
                _line(share >= least, f"{one.setting.name}: {share:.2f} of the oracle's gain, at least {least}")
            )
        if one.setting.idle:
            text = f"{one.setting.name}: `helps` on {one.helps} of {len(one.rows)} seeds, at most 5 of 100"
            lines.append(_line(one.helps <= HELPS_ON_NOTHING * len(one.rows), text))
        elif not one.setting.bad:
            lead = fmean(one.gains("ours", one.paper))
            text = f"{one.setting.name}: ours - paper {lead:+.3f}, not below {WORSE_ON_CLEAN}"
            lines.append(_line(lead >= WORSE_ON_CLEAN, text))
    bad = [one.gains("ours", one.paper) for one in settings if one.setting.bad]
    if bad and len({len(gains) for gains in bad}) == 1:
        against = mean([fmean(seed) for seed in zip(*bad, strict=True)])
        lines.append(
            _line(against.low > 0, f"mean of the {len(bad)} bad settings: ours - paper {against}, lower bound above 0")
        )
    calls = max(row["ours"]["calls"] for one in settings for row in one.rows)
    lines.append(
        _line(calls <= BUDGET, f"ours took at most {calls} of {BUDGET} policy calls, gate and validation included")
    )
    return lines


def _line(met: bool, text: str) -> str:
    return f"{'met' if met else '**missed**'}: {text}"


def _at(path: Sequence[Sequence[float]], calls: int, base: float) -> float:
    """Return the worth of the library that a path had after so many calls."""
    return next((worth for made, worth in reversed(path) if made <= calls), base)
