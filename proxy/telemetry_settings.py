"""The section `telemetry` of the configuration: what the proxy tells of itself. All of it is off by default."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client reads it when it is imported; the parent sets it before it starts workers."""


class OtlpSettings(BaseModel):
    """Where OpenTelemetry's traces and events go: a collector that takes OTLP over HTTP."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: str = Field(pattern=r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$")
    """The base URL of an OpenTelemetry collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`;
    `/v1/traces` and `/v1/logs` are added."""
    headers: Mapping[str, SecretStr] = Field(default_factory=dict)
    """Headers that it wants to see, such as `{authorization: os.environ/OTLP_KEY}`."""
    sample: float = Field(default=1.0, ge=0, le=1)
    """The share of exchanges that are traced where the client sends no `traceparent`; where it does, it decides."""


class TelemetrySettings(BaseModel):
    """Which telemetry is on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics: bool = False
    """Serve `/metrics` for Prometheus, to whoever may use the control plane."""
    access_log: bool = False
    """Write one line of JSON to standard error for each exchange, without keys, queries or contents."""
    otlp: OtlpSettings | None = None
    """Trace each exchange, continue the client's `traceparent`, and send labels as events."""

    @field_validator("otlp")
    @classmethod
    def _is_installed(cls, value: OtlpSettings | None) -> OtlpSettings | None:
        if value is not None and importlib.util.find_spec("opentelemetry") is None:
            raise ValueError("needs packages that are not installed: pip install 'tfgrpo-proxy[otlp]'")
        return value
