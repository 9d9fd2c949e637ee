from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tfgrpo.store import Store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/data/tfgrpo.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store.open(url, migrate=True)
    yield opened
    opened.close()
