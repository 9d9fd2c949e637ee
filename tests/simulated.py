"""A proxy that can train: in front of it nothing, behind its training the simulated provider, as real processes."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import RunningProxy, StartProxy
from tests.upstreams import PATIENCE
from tfgrpo.simulation.world import World

GRADER = "python:tfgrpo.simulation.tasks:grade"
SECRET = "sk-never-shown"


@contextmanager
def simulated() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "tfgrpo", "simulate", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            line.request("GET", "/v1/models")
            line.getresponse().read()
        except ConnectionError:
            continue
        else:
            return
        finally:
            line.close()
    raise AssertionError(f"nothing listens on {port}")


def training_proxy(start_proxy: StartProxy, folder: Path, provider: str | None, **more: int) -> RunningProxy:
    training: dict[str, Any] = {
        "epochs": 2,
        **more,
        "grader": GRADER,
        "gate": {"samples": 3},
        "cache": str(folder / "memo"),
    }
    for role in ("policy", "optimizer") if provider else ():
        price = {"prompt": 1.0, "completion": 2.0}
        training[role] = {"model": f"sim-{role}", "base_url": provider, "api_key": SECRET, "price": price}
    sections = {"store": {"url": f"sqlite:///{folder / 'store.db'}"}, "training": training}
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(sections))
    return start_proxy(config=config, **sections)


def tasks(count: int = 100) -> str:
    drawn = World.draw(0).tasks(count, split="train")
    return "\n".join(json.dumps({"question": one["question"], "answer": one["answer"]}) for one in drawn)
