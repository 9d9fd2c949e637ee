"""What takes `url` in this folder runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tfgrpo.store import Store


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a store that is made and empty."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path / 'both.db'}"
        Store.open(address, migrate=True).close()
        yield address
        return
    started: Any = request.getfixturevalue("postgresql")
    with started.database() as address:
        Store.open(address, migrate=True).close()
        yield address
