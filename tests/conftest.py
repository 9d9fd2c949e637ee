"""What tests share: a real proxy, served by uvicorn on a free port of this machine."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

import pytest
import uvicorn

from proxy.app import App
from proxy.server import bind, configured
from proxy.settings import Settings
from tests.postgresql import Server, server
from tests.upstreams import PATIENCE, RawUpstream, Script
from tfgrpo.store import Store
from tfgrpo.types import Exchange


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer with its headers as they came."""

    status: int
    raw_headers: list[tuple[str, str]]
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.raw_headers}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class RunningProxy:
    """A proxy in a thread. `store` is the file of its store; read it through `recorded` or after `stop`."""

    def __init__(self, settings: Settings, config: Path | None = None) -> None:
        self.settings = settings
        store = Store.open(settings.store.url, migrate=True, later=True)
        store.close()
        self._socket = bind(settings.server)
        self.port: int = self._socket.getsockname()[1]
        self._server = _Server(configured(App(settings, config), settings.server, log=None))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        self._thread.start()
        assert self._server.ready.wait(PATIENCE), "the proxy did not start"

    def stop(self) -> None:
        """Stop it as SIGTERM does: what is in flight ends, what is queued is written."""
        self._server.should_exit = True
        self._thread.join(PATIENCE + self.settings.server.drain_seconds)
        self._socket.close()

    def request(
        self, method: str, path: str, body: bytes | dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> Answered:
        """Send one request, on a connection of its own, with nothing added but host and framing."""
        raw = json.dumps(body).encode() if isinstance(body, dict) else body
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            line.putrequest(method, path, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                line.putheader(name, value)
            if raw is not None:
                line.putheader("content-length", str(len(raw)))
            line.endheaders(raw)
            response = line.getresponse()
            return Answered(response.status, response.getheaders(), response.read())
        finally:
            line.close()

    def chat(self, text: str = "hi", headers: dict[str, str] | None = None, prefix: str = "", **more: Any) -> Answered:
        """Send one chat completion request."""
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        sent = {"content-type": "application/json", "authorization": "Bearer sk-client", **(headers or {})}
        return self.request("POST", f"{prefix}/v1/chat/completions", body, sent)

    def deploy(self, set_name: str, *lessons: str, **deployment: Any) -> dict[str, Any]:
        """Make a version with these lessons and deploy it; it is in force when this returns."""
        made = self.request(
            "POST",
            f"/admin/api/sets/{set_name}/versions",
            {"experiences": [{"text": lesson} for lesson in lessons]},
        )
        assert made.status == 201, made.body
        wanted = {"live": made.json["version"], "reason": "test", **deployment}
        put = self.request("PUT", f"/admin/api/sets/{set_name}/deployment", wanted)
        assert put.status == 200, put.body
        deployed: dict[str, Any] = put.json
        return deployed

    def recorded(self) -> list[Exchange]:
        """Stop the proxy and return what it recorded, the oldest first."""
        self.stop()
        return self.stored(self.settings.store.url)

    @staticmethod
    def stored(url: str) -> list[Exchange]:
        """Return the exchanges of a store, the oldest first."""
        store = Store.open(url)
        try:
            return list(reversed(store.traffic.page(limit=1000)))
        finally:
            store.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    with server() as started:
        yield started


StartProxy = Callable[..., RunningProxy]
StartUpstream = Callable[..., RawUpstream]


@pytest.fixture
def start_proxy(tmp_path: Path) -> Iterator[StartProxy]:
    """Start proxies: `start_proxy(upstream_url, server={...}, apps=[...])`, other sections as in config.yaml.

    `config` is the file that processes of theirs read.
    """
    running: list[RunningProxy] = []

    def start(upstream: str | None = None, config: Path | None = None, **sections: Any) -> RunningProxy:
        values: dict[str, Any] = {"store": {"url": f"sqlite:///{tmp_path / 'store.db'}"}, **sections}
        values["server"] = {"port": 0, "drain_seconds": 5, **sections.get("server", {})}
        if upstream is not None:
            values["upstreams"] = [{"name": "up", "base_url": upstream}]
        proxy = RunningProxy(Settings.model_validate(values), config)
        running.append(proxy)
        proxy.start()
        return proxy

    yield start
    for proxy in running:
        proxy.stop()


@pytest.fixture
def start_upstream() -> Iterator[StartUpstream]:
    """Start scripted upstreams: `start_upstream(script)`."""
    with ExitStack() as stack:

        def start(script: Script, **options: Any) -> RawUpstream:
            return stack.enter_context(RawUpstream(script, **options))

        yield start
