"""What takes `url` in this folder runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartUpstream
from tests.proxy.programs import Programs, running
from tests.upstreams import chat
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


@pytest.fixture
def programs(tmp_path: Path, start_upstream: StartUpstream) -> Iterator[Programs]:
    """Start programs on one store and return their ports: `programs(url, 2, 4)` for two of four workers each."""
    with ExitStack() as stack:
        config = tmp_path / "c.json"
        upstreams = [{"name": "up", "base_url": start_upstream(chat).base_url}]
        routes = [{"set": "s", "models": ["*"]}]
        config.write_text(json.dumps({"server": {"port": 0}, "upstreams": upstreams, "routes": routes}))

        def start(url: str, number: int, workers: int) -> list[int]:
            return [stack.enter_context(running(config, url, workers)) for _ in range(number)]

        yield start
