"""What is measured: the upstream itself, this proxy, and the programs it is compared with, each started as its own.

Every program gets one worker on one core. nginx is set up to be fast: no access log, connections to the upstream kept,
nothing buffered; the others are as they come. One that is not installed is left out, and it is said how to install it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes import Cores, free_port, running
from tfgrpo.library import from_texts
from tfgrpo.store import Store

KEY: Final = "sk-bench-master"
SET: Final = "bench"

INSTALL: Final = {
    "nginx": "apt-get install nginx-light; NGINX=PROGRAM names another one than the one on the PATH",
    "LiteLLM": "python3 -m venv FOLDER && FOLDER/bin/pip install 'litellm[proxy]'; then LITELLM=FOLDER/bin/litellm",
    "Portkey": (
        'npm install in an empty folder with this package.json: {"dependencies": {"@portkey-ai/gateway": "1.15.2"}, '
        '"overrides": {"@hono/node-server": "1.13.8", "hono": "4.6.20"}}; '
        "then PORTKEY=FOLDER/node_modules/.bin/gateway"
    ),
}


@dataclass(frozen=True, slots=True)
class Target:
    """Something that answers on a port. `pid` None: it lives in the load generator's process."""

    name: str
    version: str
    port: int
    pid: int | None
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program runs: its folder, the cores, the port of the upstream behind it."""

    folder: Path
    cores: Cores
    upstream: int

    def file(self, name: str, text: str) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.write_text(text)
        return path


@contextmanager
def ours(place: Place, name: str = "this proxy", **sections: dict[str, object]) -> Iterator[Target]:
    """Run this proxy: recording on, 2 KB injected, one worker. `sections` are laid over its configuration."""
    with _ours(place, name, ["-m", "proxy"], sections) as target:
        yield target


@contextmanager
def unrecorded(place: Place) -> Iterator[Target]:
    """Run this proxy with everything but recording."""
    with _ours(place, "this proxy, not recording", ["-m", "benchmarks.unrecorded"], {}) as target:
        yield target


@contextmanager
def bypassed(place: Place) -> Iterator[Target]:
    """Run this proxy as a pure relay."""
    with _ours(place, "this proxy, bypass", ["-m", "proxy"], {"server": {"bypass": True}}) as target:
        yield target


@contextmanager
def _ours(place: Place, name: str, module: list[str], sections: dict[str, dict[str, object]]) -> Iterator[Target]:
    port, slug = free_port(), re.sub(r"\W+", "-", name)
    url = f"sqlite:///{place.folder}/{slug}.db"
    _deploy(url)
    settings: dict[str, object] = {
        "store": {"url": url},
        "upstreams": [{"name": "bench", "base_url": f"http://127.0.0.1:{place.upstream}/v1"}],
        "routes": [{"set": SET, "models": ["*"]}],
        **sections,
        "server": {"port": port, **sections.get("server", {})},
    }
    config = place.file(f"{slug}.json", json.dumps(settings))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    arguments = [sys.executable, *module, "--config", str(config)]
    with running(arguments, place.folder / f"{slug}.log", place.cores, environment) as pid:
        yield Target(name, _commit(), port, pid)


def _deploy(url: str) -> None:
    store = Store.open(url, migrate=True)
    lessons = [f"lesson {i}: " + "look the order up before you answer, then say it in one line " for i in range(24)]
    store.sets.add_version(SET, from_texts(lessons), status="by hand")
    store.sets.deploy(SET, live=1, reason="bench", actor="bench")
    store.close()


def _commit() -> str:
    git = shutil.which("git")
    if git is None:
        return "?"
    described = subprocess.run(  # noqa: S603 - fixed arguments
        [git, "describe", "--always", "--dirty"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "?"


_NGINX: Final = """
daemon off;
worker_processes 1;
error_log {folder}/nginx-error.log warn;
pid {folder}/nginx.pid;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    keepalive_requests 100000000;
    client_max_body_size 64m;
    client_body_buffer_size 1m;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    upstream bench {{
        server 127.0.0.1:{upstream};
        keepalive 1024;
        keepalive_requests 100000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://bench;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 600s;
        }}
    }}
}}
"""


@contextmanager
def nginx(place: Place, program: str) -> Iterator[Target]:
    """Run nginx as a reverse proxy."""
    port = free_port()
    config = place.file("nginx.conf", _NGINX.format(folder=place.folder, upstream=place.upstream, port=port))
    said = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stderr  # noqa: S603 - as below
    with running([program, "-c", str(config), "-p", str(place.folder)], place.folder / "nginx.log", place.cores) as pid:
        yield Target("nginx", said.strip().rpartition("/")[2], port, pid)


@contextmanager
def litellm(place: Place, program: str) -> Iterator[Target]:
    """Run LiteLLM's proxy in its default configuration, from an environment of its own."""
    port = free_port()
    entry = {"model": "openai/bench", "api_base": f"http://127.0.0.1:{place.upstream}/v1", "api_key": "sk-upstream"}
    settings = {
        "model_list": [{"model_name": "bench", "litellm_params": entry}],
        "general_settings": {"master_key": KEY},
    }
    config = place.file("litellm.yaml", json.dumps(settings))
    arguments = [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with running(arguments, place.folder / "litellm.log", place.cores, environment) as pid:
        installed = Path(program).parent.parent.glob("lib/python*/site-packages/litellm-*.dist-info")
        version = next((found.name.split("-")[1].removesuffix(".dist") for found in installed), "?")
        yield Target("LiteLLM", version, port, pid)


@contextmanager
def portkey(place: Place, program: str) -> Iterator[Target]:
    """Run Portkey's gateway, without its console."""
    port = free_port()
    environment = {**os.environ, "NODE_ENV": "production"}
    log = place.folder / "portkey.log"
    with running([program, f"--port={port}", "--headless"], log, place.cores, environment) as pid:
        package = Path(program).resolve().parent.parent / "package.json"
        version = json.loads(package.read_text())["version"]
        headers = ("x-portkey-provider: openai", f"x-portkey-custom-host: http://127.0.0.1:{place.upstream}/v1")
        yield Target("Portkey", version, port, pid, headers)


PEERS: Final[dict[str, Callable[[Place, str], AbstractContextManager[Target]]]] = {
    "nginx": nginx,
    "LiteLLM": litellm,
    "Portkey": portkey,
}
"""The programs this proxy is compared with, by the names that reports use."""
