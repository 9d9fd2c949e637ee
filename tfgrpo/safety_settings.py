"""What training reads of the section `apps`. How a setting is used is known elsewhere."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class TeachingApp(BaseModel):
    """What training knows of an app. Its keys are none of training's business."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    """Its name, in records and metrics."""
    teaches: bool = False
    """Whether its traffic may be learned from."""
    sets: tuple[str, ...] = ()
    """The sets it may use, and so those that it teaches."""
