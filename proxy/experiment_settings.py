"""The sections `experiment` and `promotion` of the configuration. How a setting is used is known elsewhere."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tfgrpo.durations import Seconds


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExperimentSettings(_Section):
    """When the trajectories of a live experiment are looked at."""

    label_window: Seconds = 86400.0
    """The age at which a trajectory's labels are its reward for good."""
    early_window: Seconds = 3600.0
    """The age at which it is looked at whether one failed, and until which a candidate's is said to await a label."""


class PromotionSettings(_Section):
    """Who acts on what an experiment decides, and how much may be due to chance."""

    mode: Literal["manual", "auto"] = "manual"
    """`manual`: the decision is only shown. `auto`: candidates are started, promoted and rolled back."""
    share: float = Field(default=0.1, gt=0, lt=1)
    """Of new trajectories, for a candidate that the proxy starts."""
    outstanding: int = Field(default=50, ge=1)
    """How many candidate trajectories may await their label, with `auto`."""
    better: float = Field(default=0.025, gt=0, lt=0.5)
    """The chance that any candidate of a set that is no better is ever promoted."""
    worse: float = Field(default=0.05, gt=0, lt=0.5)
    """The chance that a candidate that is no worse is ever rolled back."""
    errors: float = Field(default=0.05, ge=0, lt=1)
    """By how much more often than live a candidate's trajectories may fail."""

    @model_validator(mode="before")
    @classmethod
    def _mode_alone(cls, value: Any) -> Any:
        return {"mode": value} if isinstance(value, str) else value
