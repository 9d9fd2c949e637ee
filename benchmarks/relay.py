"""CPU per request, start time and memory of the proxy, and of LiteLLM's proxy where one is named: `make bench`.

Everything runs on this machine: an upstream that answers at once, the proxy under test with one worker, and a load of
16 connections. CPU is that of the proxy's processes (user and system, writer thread included), read from /proc before
and after. The request is a chat completion of 1 KB; recording is on and 2 KB are injected. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import uvloop

from tfgrpo.library import from_texts
from tfgrpo.store import Store

ANSWER = json.dumps(
    {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "word " * 150}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 150, "total_tokens": 350},
    }
).encode()
TICKS = os.sysconf("SC_CLK_TCK")
CONNECTIONS = 16


def say(text: str) -> None:
    """Print a line of the result."""
    print(text, flush=True)  # noqa: T201 - the benchmark's output


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run saw. CPU and latency in milliseconds, memory in MiB."""

    requests: int
    per_second: float
    cpu: float
    p50: float
    memory: float


class Upstream(asyncio.Protocol):
    """Answers each request of a connection at once; knows nothing of HTTP but where a request ends."""

    def __init__(self) -> None:
        self._buffer = b""
        self._head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ANSWER)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to answer on."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            self._buffer = self._buffer[end + 4 + length :]
            self._transport.write(self._head + ANSWER)


def body() -> bytes:
    """Return a chat completion request of 1 KB."""
    filler = "The quick brown fox asks about order twelve. " * 20
    messages = [{"role": "system", "content": "You are helpful."}, {"role": "user", "content": filler}]
    return json.dumps({"model": "bench", "messages": messages, "temperature": 0.2}).encode()


async def connection(port: int, request: bytes, until: float, latencies: list[float]) -> None:
    """Send requests one after the other over one connection until the time is up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (sent := time.perf_counter()) < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the proxy answered {head.splitlines()[0].decode()}")
        lower = head.lower()
        if (at := lower.find(b"content-length:")) >= 0:
            await reader.readexactly(int(lower[at + 15 :].split(b"\r\n", 1)[0]))
        else:
            await reader.readuntil(b"0\r\n\r\n")
        latencies.append(time.perf_counter() - sent)
    writer.close()


async def load(port: int, seconds: float, connections: int, key: str) -> list[float]:
    """Return the latency of every request, in seconds."""
    payload = body()
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer %s\r\ncontent-length: %d\r\n\r\n%s" % (key.encode(), len(payload), payload)
    )
    latencies: list[float] = []
    until = time.perf_counter() + seconds
    await asyncio.gather(*[connection(port, request, until, latencies) for _ in range(connections)])
    return latencies


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *[one for child in children for one in family(int(child))]]
    return []


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process and its descendants have used."""
    total = 0
    for one in family(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def memory(pid: int) -> float:
    """Return the resident memory of a process and its descendants, in MiB."""
    status = [Path(f"/proc/{one}/status").read_text() for one in family(pid)]
    return sum(int(line.split()[1]) for text in status for line in text.splitlines() if line.startswith("VmRSS")) / 1024


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program and end it."""
    with (folder / "log.txt").open("ab") as log:
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        process = subprocess.Popen(arguments, stdout=log, stderr=log, cwd=Path(__file__).parent.parent, env=environment)  # noqa: S603 - named by the user of the benchmark
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


async def measure(process: subprocess.Popen[bytes], port: int, seconds: float, key: str) -> Measured:
    """Warm up, load, and read what it cost."""
    await load(port, 1.0, CONNECTIONS, key)
    before, started = cpu_seconds(process.pid), time.perf_counter()
    latencies = await load(port, seconds, CONNECTIONS, key)
    took = time.perf_counter() - started
    await asyncio.sleep(0.3)  # what was queued is written
    cpu = (cpu_seconds(process.pid) - before) / len(latencies)
    alone = sorted(await load(port, 1.0, 1, key))
    return Measured(
        requests=len(latencies),
        per_second=len(latencies) / took,
        cpu=cpu * 1000,
        p50=alone[len(alone) // 2] * 1000,
        memory=memory(process.pid),
    )


async def first_answer(port: int, key: str, patience: float = 60.0) -> float:
    """Return when the proxy answered a request for the first time."""
    started = time.perf_counter()
    while time.perf_counter() - started < patience:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            latencies: list[float] = []
            await connection(port, _one(key), time.perf_counter() + 0.001, latencies)
            if latencies:
                return time.perf_counter()
        await asyncio.sleep(0.01)
    raise SystemExit("the proxy did not answer within a minute")


def _one(key: str) -> bytes:
    payload = body()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(payload)}\r\n\r\n".encode() + payload


async def ours(folder: Path, upstream: int, seconds: float) -> Measured:
    """Measure this proxy: recording on, 2 KB injected."""
    url, port = f"sqlite:///{folder}/bench.db", free_port()
    store = Store.open(url, migrate=True)
    store.sets.add_version(
        "bench", from_texts([f"lesson {i}: " + "check it twice " * 6 for i in range(20)]), status="by hand"
    )
    store.sets.deploy("bench", live=1, reason="bench", actor="bench")
    store.close()
    config = folder / "config.yaml"
    upstreams = [{"name": "bench", "base_url": f"http://127.0.0.1:{upstream}/v1"}]
    routes = [{"set": "bench", "models": ["*"]}]
    config.write_text(
        json.dumps({"server": {"port": port}, "store": {"url": url}, "upstreams": upstreams, "routes": routes})
    )
    started = time.perf_counter()
    with running([sys.executable, "-m", "proxy", "--config", str(config)], folder) as process:
        ready = await first_answer(port, "bench")
        say(f"start to first served request {ready - started:.2f} s; idle worker {memory(process.pid):.0f} MiB")
        return await measure(process, port, seconds, "bench")


async def litellm(folder: Path, program: str, upstream: int, seconds: float) -> Measured:
    """Measure LiteLLM's proxy, one worker, in its default configuration."""
    port, key = free_port(), "sk-bench-master"
    config = folder / "litellm.yaml"
    entry = {"model": "openai/bench", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "sk-upstream"}
    config.write_text(
        json.dumps(
            {
                "model_list": [{"model_name": "bench", "litellm_params": entry}],
                "general_settings": {"master_key": key},
            }
        )
    )
    with running([program, "--config", str(config), "--port", str(port), "--num_workers", "1"], folder) as process:
        await first_answer(port, key)
        return await measure(process, port, seconds, key)


def show(name: str, one: Measured) -> None:
    """Print one row."""
    say(
        f"{name:10} {one.requests:7} requests  {one.per_second:8.0f}/s  CPU {one.cpu:7.3f} ms a request  "
        f"p50 {one.p50:6.2f} ms  {one.memory:5.0f} MiB"
    )


async def benchmark(seconds: float, program: str | None) -> None:
    """Run the comparison."""
    loop = asyncio.get_running_loop()
    upstream = await loop.create_server(Upstream, "127.0.0.1", 0)
    port = upstream.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="tfgrpo-bench-") as folder:
        direct = sorted(await load(port, 1.0, 1, "bench"))
        say(f"direct p50 {direct[len(direct) // 2] * 1000:.2f} ms")
        mine = await ours(Path(folder), port, seconds)
        show("tfgrpo", mine)
        if program is None:
            say("LiteLLM's proxy is not measured; name its program with --litellm")
        else:
            theirs = await litellm(Path(folder), program, port, seconds)
            show("LiteLLM", theirs)
            say(f"CPU per request: 1/{theirs.cpu / mine.cpu:.0f} of LiteLLM's")
    upstream.close()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each proxy is loaded (5)")
    parser.add_argument("--litellm", metavar="PROGRAM", help="LiteLLM's proxy, installed in an environment of its own")
    arguments = parser.parse_args()
    uvloop.run(benchmark(arguments.seconds, arguments.litellm))


if __name__ == "__main__":
    main()
