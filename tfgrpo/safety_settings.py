"""The section `safety` of the configuration, and what training reads of `apps`. How a setting is used is known
elsewhere.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field


class SafetySettings(BaseModel):
    """What a lesson from recorded traffic needs before it may be active, and how much one user counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min_groups: int = Field(default=3, ge=1)
    """How many groups must say a lesson."""
    min_principals: int = Field(default=2, ge=1)
    """How many principals must stand behind those groups. A second one is not asked for as long as nothing of the
    quorum is set, there are no `apps`, and all traffic that teaches the set was made with one key."""

    principal: Literal["key", "end_user"] = "key"
    """Who is told apart: keys of clients; or, `end_user`, whom their requests name (`user`, `safety_identifier` or
    `metadata.user_id`), which asks for trust in whoever holds the key: anyone can name anyone."""
    own_labels: Literal["count", "ignore"] = "count"
    """Whether labels count that were given by the key that made the traffic; `ignore` needs another key that judges,
    such as an app's `feedback_key`."""
    max_share: float = Field(default=0.5, gt=0, le=1)
    """How much one principal may count for, where there are several: of the labels of a rollout, of the rollouts of a
    group, of the groups of a run. 1: no bound."""

    @property
    def quorum_is_set(self) -> bool:
        """Whether somebody asked for a quorum, if only for the usual one."""
        return bool({"min_groups", "min_principals", "principal"} & self.model_fields_set)


USUAL: Final = SafetySettings()
"""What holds where nothing is configured."""


class TeachingApp(BaseModel):
    """What training knows of an app. Its keys are none of training's business."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    """Its name, in records and metrics."""
    teaches: bool = False
    """Whether its traffic may be learned from."""
    sets: tuple[str, ...] = ()
    """The sets it may use, and so those that it teaches."""
