"""The section `telemetry` of the configuration: what the proxy tells of itself. All of it is off by default."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client reads it when it is imported; the parent sets it before it starts workers."""


class TelemetrySettings(BaseModel):
    """Which telemetry is on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics: bool = False
    """Serve `/metrics` for Prometheus, to whoever may use the control plane."""
    access_log: bool = False
    """Write one line of JSON to standard error for each exchange, without keys, queries or contents."""
