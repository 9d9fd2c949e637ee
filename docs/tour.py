"""The whole loop in two minutes, with no key: `make tour`.

It starts the simulated provider and the proxy, then is an application that knows nothing of either: the official
OpenAI SDK with another base URL. It labels its answers over HTTP, trains, swaps the new version in while requests
run, and compares. Every number it prints was counted in this run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import aiohttp
from openai import AsyncOpenAI

from tfgrpo.simulation.tasks import grade
from tfgrpo.simulation.world import World

SEED = int(os.environ.get("TOUR_SEED", "1"))
SET = "tour"
TASKS = 60
ROLLOUTS = 5
FRESH = 90
ADMIN_KEY = "tour-admin-key"
CONTROL = 0.4

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answered and labelled request."""

    question: str
    arm: str
    injected: str
    reward: float


def say(text: str) -> None:
    """Print a line of the tour."""
    print(text, flush=True)  # noqa: T201 - the tour's output


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def configuration(folder: Path, provider: int, proxy: int) -> Path:
    """Write the configuration an operator would write, and return its path."""
    endpoint = f"http://127.0.0.1:{provider}/v1"
    path = folder / "config.yaml"
    # JSON is YAML too.
    path.write_text(
        json.dumps(
            {
                "server": {"port": proxy, "admin_key": ADMIN_KEY},
                "store": {"url": f"sqlite:///{folder}/tfgrpo.db"},
                "upstreams": [{"name": "simulated", "base_url": endpoint, "models": ["*"]}],
                "routes": [{"set": SET, "models": ["sim-policy"]}],
                "training": {
                    "objective": "The agent works on requests of an office. Learn which ways of working succeed.",
                    "policy": {"model": "sim-policy", "base_url": endpoint},
                    "optimizer": {"model": "sim-optimizer", "base_url": endpoint},
                },
            },
            indent=2,
        )
    )
    return path


@contextlib.contextmanager
def running(name: str, log: Path, *arguments: str) -> Iterator[None]:
    """Run a program beside the tour and end it with it."""
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=output, stderr=output)  # noqa: S603 - ours
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()
                say(f"({name} did not stop by itself; see {log})")


async def answering(session: aiohttp.ClientSession, url: str, log: Path) -> None:
    """Return once `url` answers; give up after ten seconds with what the program said."""
    for _ in range(200):
        with contextlib.suppress(aiohttp.ClientError):
            async with session.get(url):
                return
        await asyncio.sleep(0.05)
    raise SystemExit(f"nothing answers at {url}:\n{log.read_text()}")


async def work(app: AsyncOpenAI, row: Row) -> Outcome:
    """Do what an application does: ask, use the answer, and say how well it went."""
    messages: list[Any] = [{"role": "user", "content": row["question"]}]
    raw = await app.chat.completions.with_raw_response.create(model="sim-policy", messages=messages)
    completion = raw.parse()
    reward = grade(completion.choices[0].message.content or "", row["answer"])
    label = {"completion_id": completion.id, "value": reward, "source": "grader"}
    await app.post("/feedback", body=label, cast_to=object)
    headers = raw.headers
    return Outcome(row["question"], headers["x-tfgrpo-arm"], headers["x-tfgrpo-set"], reward)


async def works(app: AsyncOpenAI, rows: Sequence[Row], times: int) -> list[Outcome]:
    """Work on each row `times` times, sixteen requests at once."""
    gate = asyncio.Semaphore(16)

    async def one(row: Row) -> Outcome:
        async with gate:
            return await work(app, row)

    return list(await asyncio.gather(*[one(row) for row in rows for _ in range(times)]))


def interval(outcomes: Sequence[Outcome]) -> str:
    """Return the mean reward with a 95 percent interval: tasks are drawn again, not rewards (10,000 times)."""
    by_task: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        by_task[outcome.question].append(outcome.reward)
    means = [fmean(rewards) for rewards in by_task.values()]
    draw = random.Random(0)  # noqa: S311 - not a secret
    drawn = sorted(fmean(draw.choices(means, k=len(means))) for _ in range(10_000))
    return f"{fmean(means):.3f} [{drawn[250]:.3f}, {drawn[9749]:.3f}] ({len(outcomes)} requests, {len(means)} tasks)"


async def command(*arguments: str) -> str:
    """Run `tfgrpo`, its progress on this terminal, and return what it printed."""
    say(f"\n$ tfgrpo {' '.join(Path(a).name if a.startswith('/') else a for a in arguments)}")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tfgrpo", *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"tfgrpo {arguments[0]} ended with {process.returncode}")
    return output.decode()


async def swap(session: aiohttp.ClientSession, base: str, version: int) -> None:
    """Deploy a version for all new trajectories but a control share, as an operator would: one call."""
    what = {"live": version, "shares": {"control": CONTROL}, "reason": "tour"}
    url = f"{base}/admin/api/sets/{SET}/deployment"
    async with session.put(url, json=what, headers={"authorization": f"Bearer {ADMIN_KEY}"}) as answer:
        answer.raise_for_status()


async def swapped_under_traffic(app: AsyncOpenAI, session: aiohttp.ClientSession, base: str, version: int) -> None:
    """Swap while requests run, and say how soon answers carried the version and whether any request failed."""
    traffic = asyncio.create_task(works(app, World.draw(SEED).tasks(40, split="train"), 5))
    await asyncio.sleep(0.2)
    asked_at = time.monotonic()
    await swap(session, base, version)
    probe = World.draw(SEED).tasks(1, split="train")[0]
    while (await work(app, probe)).injected != f"{SET}@{version}":
        await asyncio.sleep(0.005)
    took = time.monotonic() - asked_at
    outcomes = await traffic
    say(f"swapped in {took * 1000:.0f} ms while {len(outcomes)} requests ran; none failed")


async def tour(folder: Path) -> None:
    """Take the tour in `folder`."""
    provider, proxy = free_port(), free_port()
    config = configuration(folder, provider, proxy)
    base = f"http://127.0.0.1:{proxy}"
    rows = World.draw(SEED)
    sim_log, proxy_log = folder / "simulate.log", folder / "proxy.log"
    simulated = running("simulate", sim_log, "tfgrpo", "simulate", "--port", str(provider), "--seed", str(SEED))
    proxied = running("proxy", proxy_log, "proxy", "--config", str(config))
    with simulated, proxied:
        async with aiohttp.ClientSession() as session, AsyncOpenAI(base_url=f"{base}/v1", api_key="none") as app:
            await answering(session, f"http://127.0.0.1:{provider}/v1/models", sim_log)
            await answering(session, f"{base}/health/readiness", proxy_log)
            say(f"simulated provider on port {provider}, proxy on port {proxy}, world {SEED}")
            say(f"an application sends {TASKS} tasks, {ROLLOUTS} times each, and labels the answers")
            before = await works(app, rows.tasks(TASKS, split="train"), ROLLOUTS)
            say(f"mean reward with nothing learned: {interval(before)}")
            say((await command("groups", "--set", SET, "--config", str(config))).rstrip())
            trained = json.loads(
                await command("train", "--set", SET, "--from", "traffic", "--json", "--config", str(config))
            )
            version = trained["version"]
            if version is None:
                raise SystemExit("this world taught nothing: no edit was accepted (that happens; try TOUR_SEED=2)")
            say(await command("sets", "show", f"{SET}@{version}", "--config", str(config)))
            await swapped_under_traffic(app, session, base, version)
            say(f"\nthe application works on {FRESH} tasks that nothing has seen, 4 times each")
            after = await works(app, rows.tasks(FRESH, split="held-out"), 4)
            live = [outcome for outcome in after if outcome.arm == "live"]
            control = [outcome for outcome in after if outcome.arm == "control"]
            say(f"mean reward before, on the training tasks: {interval(before)}")
            say(f"mean reward after, arm live:               {interval(live)}")
            say(f"mean reward after, arm control:            {interval(control)}")
            await proof(folder, config, rows, version)


async def proof(folder: Path, config: Path, world: World, version: int) -> None:
    """Compare the version with nothing on held-out tasks, paired: what may say `helps`."""
    data = folder / "held-out.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in world.tasks(60, split="test")))
    arguments = ("evaluate", "--set", f"{SET}@{version}", "--against", "none", "--k", "6", "--data", str(data))
    grader = ("--grader", "python:tfgrpo.simulation.tasks:grade")
    say((await command(*arguments, *grader, "--config", str(config))).rstrip())


def main() -> None:
    """Take the tour in a folder of its own and say how long it took."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tfgrpo-tour-") as folder:
        asyncio.run(tour(Path(folder)))
    say(f"\nthe tour took {time.monotonic() - started:.0f} s; README.md says how to point your application here")


if __name__ == "__main__":
    main()
