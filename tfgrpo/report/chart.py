"""The curve of reward by step as coordinates: the mean of each step's rollouts, and what validation tasks earned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tfgrpo.report.record import Record

WIDTH: Final = 720
HEIGHT: Final = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 110, 16, 36
_STEP: Final = 0.1
_LEAST_SPAN: Final = 0.2
_MOST_LABELS: Final = 12


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a curve, in pixels, with its number and what it says."""

    x: float
    y: float
    step: int
    value: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Two curves on one scale. `ticks` are (y, label), `steps` (x, label), `borders` the x where epochs begin."""

    rollouts: tuple[Dot, ...]
    validation: tuple[Dot, ...]
    ticks: tuple[tuple[float, str], ...]
    steps: tuple[tuple[float, str], ...]
    borders: tuple[float, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM

    @classmethod
    def of(cls, run: Record) -> Chart | None:
        """Return the chart of a run; None when fewer than two steps have a reward."""
        steps = run.result.steps
        trained = [(at, step.reward) for at, step in enumerate(steps) if step.reward is not None]
        if len(trained) < 2:  # noqa: PLR2004 - a curve takes two points
            return None
        ends = _ends([step.epoch for step in steps])
        scores = [(at, one.validation) for at, one in zip(ends, run.result.epochs, strict=False)]
        validated = [(at, value) for at, value in scores if value is not None]
        low, high = _range([value for _, value in (*trained, *validated)])
        x = _scale(len(steps))

        def dots(points: Sequence[tuple[int, float]]) -> tuple[Dot, ...]:
            return tuple(Dot(x[at], _y(value, low, high), at + 1, value) for at, value in points)

        every = math.ceil(len(steps) / _MOST_LABELS)
        count = round((high - low) / _STEP)
        values = [low + _STEP * number for number in range(count + 1)]
        return cls(
            rollouts=dots(trained),
            validation=dots(validated),
            ticks=tuple((_y(value, low, high), f"{value:.1f}") for value in values),
            steps=tuple((x[at], str(at + 1)) for at in range(0, len(steps), every)),
            borders=tuple(round((x[at] + x[at + 1]) / 2, 1) for at in ends if at + 1 < len(steps)),
        )


def _ends(epochs: Sequence[int]) -> list[int]:
    """Return the places of the last step of each epoch."""
    return [at for at, epoch in enumerate(epochs) if at + 1 == len(epochs) or epochs[at + 1] != epoch]


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Return the borders of the scale: tenths around the values, two apart or more, within [0, 1]."""
    low = math.floor(min(values) / _STEP + 1e-9) * _STEP
    high = math.ceil(max(values) / _STEP - 1e-9) * _STEP
    if high - low < _LEAST_SPAN:
        low, high = max(0.0, low - _STEP), min(1.0, high + _STEP)
    return round(low, 1), round(high, 1)


def _scale(steps: int) -> list[float]:
    room = WIDTH - _LEFT - _RIGHT
    return [round(_LEFT + room * at / (steps - 1), 1) for at in range(steps)]


def _y(value: float, low: float, high: float) -> float:
    return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low), 1)
