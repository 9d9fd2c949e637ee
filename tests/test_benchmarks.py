"""The benchmark's own parts: what it sends, how it reads answers, how it judges."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import filling, live
from benchmarks.bodies import Requests
from benchmarks.goals import GOALS, derive
from benchmarks.load import LoadError, counted, streams
from benchmarks.processes import cpu_seconds, memory, open_files, threads
from benchmarks.results import Results
from benchmarks.upstream import Plan, Upstream
from tests.postgresql import Server
from tests.upstreams import RawUpstream
from tfgrpo.store import Store
from tfgrpo.store.browsing import Wanted


@pytest.mark.parametrize("size", [1 << 10, 16 << 10, 256 << 10])
def test_requests_are_whole_and_of_the_size_on_average(size: int) -> None:
    asked = Requests(size, key="k").conversations()
    bodies = [next(asked).partition(b"\r\n\r\n")[2] for _ in range(16)]
    assert abs(sum(map(len, bodies)) / len(bodies) - size) < size / 20
    assert {json.loads(body)["messages"][-1]["role"] for body in bodies} == {"user"}


def test_a_later_turn_continues_the_one_before() -> None:
    asked = Requests(16 << 10, key="k").conversations()
    first, second = (json.loads(next(asked).partition(b"\r\n\r\n")[2])["messages"] for _ in range(2))
    assert second[: len(first)] == first


async def test_whole_answers_are_told_from_each_other() -> None:
    async with Upstream().listening() as upstream:
        loaded = await counted(upstream.port, Requests(1 << 10, key="k"), 50, 4)
    assert len(loaded.seen) >= 50
    assert all(seen.whole and seen.status == 200 for seen in loaded.seen)


@pytest.mark.parametrize("pace", [0.0, 0.001])
async def test_each_chunk_of_a_stream_is_counted_once(pace: float) -> None:
    async with Upstream().listening() as upstream:
        upstream.plan = Plan(chunks=20, pace=pace)
        loaded = await streams(upstream.port, Requests(1 << 10, key="k", stream=True), 5, over=0.01)
    assert [(seen.chunks, seen.whole) for seen in loaded.seen] == [(20, True)] * 5


async def test_a_stream_that_is_cut_is_not_whole() -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    with RawUpstream(lambda _: [head, b"3\r\na~b\r\n", "close"]) as upstream:
        (seen,) = (await streams(upstream.port, Requests(1 << 10, key="k"), 1, over=0.0)).seen
    assert (seen.status, seen.chunks, seen.whole) == (200, 1, False)


async def test_a_refusal_ends_the_load() -> None:
    with (
        RawUpstream(lambda _: [b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"]) as upstream,
        pytest.raises(LoadError, match="401"),
    ):
        await counted(upstream.port, Requests(1 << 10, key="k"), 1, 1)


async def test_a_process_is_measured_by_its_own_clock() -> None:
    mine = os.getpid()
    before, here = cpu_seconds(mine), time.process_time()
    await asyncio.to_thread(sum, range(3_000_000))
    assert cpu_seconds(mine) - before == pytest.approx(time.process_time() - here, abs=0.02)
    assert memory(mine) > 1
    assert threads(mine) >= 1
    assert open_files(mine) >= 1


def test_a_goal_is_judged_by_the_ratio_of_the_medians() -> None:
    results = Results()
    for mine, theirs in ((1.0, 40.0), (1.0, 50.0), (9.0, 45.0)):
        results.add("1KB", "this proxy", {"cpu": mine})
        results.add("1KB", "LiteLLM", {"cpu": theirs})
    reached = GOALS[0].reached(results)
    assert reached == pytest.approx(1 / 45)
    assert GOALS[0].verdict(reached) == "required"
    assert GOALS[1].verdict(GOALS[1].reached(results)) == "not measured"


def test_added_latency_is_taken_within_a_round() -> None:
    results = Results()
    for direct, through in ((1.0, 3.0), (2.0, 5.0)):
        results.add("latency", "direct", {"p50": direct, "p99": direct})
        results.add("latency", "this proxy", {"p50": through, "p99": through})
    derive(results)
    assert [one["added_p50"] for one in results.rounds["latency"]["this proxy"]] == [2.0, 3.0]


def test_a_harmful_candidate_of_the_simulated_traffic_is_rolled_back_soon() -> None:
    ends = [live.run("harm", seed) for seed in range(3)]
    assert [(end.action, end.answered < 600) for end in ends] == [("roll back", True)] * 3


@pytest.mark.parametrize(("bad", "runs", "low", "high"), [(0, 200, 0.0, 0.0183), (10, 200, 0.0242, 0.0900)])
def test_a_rate_is_given_with_its_exact_interval(bad: int, runs: int, low: float, high: float) -> None:
    assert live.interval(bad, runs) == pytest.approx((low, high), abs=5e-4)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_filled_store_is_one_that_the_proxy_could_have_written(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "sqlite":
        filled(f"sqlite:///{tmp_path / 'filled.db'}")
        return
    started: Server = request.getfixturevalue("postgresql")
    with started.database() as url:
        filled(url)


def filled(url: str) -> None:
    filling.fill(url, 500)
    with closing(Store.open(url)) as store:
        exchanges = store.traffic.page(limit=1000)
        assert len(exchanges) == 500
        assert all(store.traffic.assignment(one.app, one.trajectory) for one in exchanges)
        kept = store.traffic.bodies([one.id for one in exchanges])
        assert set(kept) == {one.id for one in exchanges if one.record == "full"}
        rare = [one for one in exchanges if one.id in kept and filling.RARE_TEXT.encode() in kept[one.id].request]
        assert len({one.trajectory for one in rare}) == 1
        labelled = store.browsing.trajectories(Wanted(judged="any"), limit=500, seconds=60.0)
        assert labelled.rows
        facts = store.hours.facts(since=0, width=1_000_000)
        assert sum(one.count for one in facts if one.name in filling.OUTCOMES) == 500
