"""SIGTERM while many streams are open: real processes, real connections, nothing lost and nothing dressed up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conftest import RunningProxy
from tests.upstreams import PATIENCE
from tfgrpo.store import Store

ROOT = Path(__file__).parents[2]
STREAMS = 500
LATER = 60
"""Seconds for all streams together: two busy cores open a thousand connections."""

ASKED = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "go on"}]}).encode()
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n"
    b"authorization: Bearer sk-client\r\ncontent-length: %d\r\n\r\n" % len(ASKED)
) + ASKED
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def event(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    said = f"data: {json.dumps({'id': 'c', 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(said), said)


DONE = b"e\r\ndata: [DONE]\n\n\r\n"


@dataclass
class Upstream:
    """Begins each answer at once and ends it when it is told to."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    address: str = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD + event("one "))
            await self.go_on.wait()
            writer.write(event("two", "stop") + DONE + END)
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    made = Upstream()
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0, backlog=1024)
    made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield made
    finally:
        made.go_on.set()
        server.close()


async def started(folder: Path, address: str, *, drain: int, workers: int) -> tuple[asyncio.subprocess.Process, int]:
    url = f"sqlite:///{folder}/s.db"
    Store.open(url, migrate=True).close()
    server = {"port": 0, "drain_seconds": drain, "workers": workers}
    written = folder / "c.yaml"
    config = {"server": server, "store": {"url": url}, "upstreams": [{"name": "up", "base_url": address}]}
    await asyncio.to_thread(written.write_text, json.dumps(config))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "proxy", "--config", str(written), stdout=pipe, stderr=pipe, cwd=ROOT, env=os.environ
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    return process, int(line.split("127.0.0.1:")[1].split("/")[0])


async def opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a stream whose first event has come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    await reader.readuntil(b"one ")
    return reader, writer


async def rest(stream: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> str:
    """How a stream went on: to its end, or broken off."""
    reader, writer = stream
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(65536):
            got += piece
    writer.close()
    return "whole" if got.endswith(DONE[3:] + END) else "dressed up" if got.endswith(END) else "broken"


async def stop_under(folder: Path, *, drain: int, finish: bool, workers: int = 1) -> tuple[Counter[str], int, str]:
    """Stop a proxy with STREAMS open streams; return how they ended, its exit status and its log."""
    async with asyncio.timeout(LATER), upstream() as up:
        process, port = await started(folder, up.address, drain=drain, workers=workers)
        try:
            streams = await asyncio.gather(*(opened(port) for _ in range(STREAMS)))
            process.send_signal(signal.SIGTERM)
            await refused(port)
            if finish:
                up.go_on.set()
            ends = Counter(await asyncio.gather(*(rest(one) for one in streams)))
            _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
    assert process.returncode is not None
    return ends, process.returncode, err.decode()


async def refused(port: int) -> None:
    """Wait until the proxy takes no further connection."""
    with contextlib.suppress(ConnectionError):
        while True:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await writer.wait_closed()


def outcomes(folder: Path) -> Counter[str]:
    return Counter(str(one.outcome) for one in RunningProxy.stored(f"sqlite:///{folder}/s.db"))


@pytest.mark.parametrize("workers", [1, 2])
async def test_streams_that_are_open_at_sigterm_finish_and_are_recorded(tmp_path: Path, workers: int) -> None:
    ended = await stop_under(tmp_path, drain=LATER, finish=True, workers=workers)
    assert ended == (Counter(whole=STREAMS), 0, "")
    assert outcomes(tmp_path) == Counter(complete=STREAMS)


async def test_streams_that_outlast_the_drain_are_broken_and_recorded_as_such(tmp_path: Path) -> None:
    ends, status, err = await stop_under(tmp_path, drain=1, finish=False)
    assert (ends, status, len(err.splitlines())) == (Counter(broken=STREAMS), 0, 1)
    assert outcomes(tmp_path) == Counter(broken=STREAMS)
