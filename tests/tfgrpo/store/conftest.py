"""Every test of this folder that takes `url` or `store` runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tfgrpo.store import Store


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/data/tfgrpo.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    started: Any = request.getfixturevalue("postgresql")
    with started.database() as address:
        yield address


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store.open(url, migrate=True)
    yield opened
    opened.close()
