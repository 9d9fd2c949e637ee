"""The section `outage` of the configuration. How a setting is used is known elsewhere."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from tfgrpo.store import parsed

_FOLDER: Final = Path("data")


class OutageSettings(BaseModel):
    """What is kept on this machine's disk for the time when the store is away."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path | None = None
    """Where. Without it beside SQLite's file, `FILE.outage`; for PostgreSQL in a folder of the database's own below
    `data`."""
    spill_bytes: int = Field(default=1 << 30, ge=0)
    """How much of the records that the store does not take may wait there; 0: none, they wait in memory alone."""

    def folder_for(self, url: str) -> Path:
        """Return the folder for the store at `url`: two stores never share one by default."""
        if self.folder is not None:
            return self.folder
        store = parsed(url)
        if store.get_backend_name() == "sqlite":
            return Path(f"{store.database}.outage")
        where = f"{store.host}:{store.port}/{store.database}?{sorted(store.query.items())}"
        return _FOLDER / f"outage-{hashlib.sha256(where.encode()).hexdigest()[:12]}"
