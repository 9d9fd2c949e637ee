"""What takes `url` in this folder runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from tests.proxy.conftest import url as url
