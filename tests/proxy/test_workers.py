"""Several worker processes, of one program or of two, are one proxy to their clients."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import closing
from typing import NamedTuple, Self

import pytest

from tests.proxy.programs import Programs, call
from tests.upstreams import PATIENCE
from tfgrpo.store import Store
from tfgrpo.types import Experience, Library

SECOND = 1.0
TRAJECTORIES = 12


class Seen(NamedTuple):
    """A request: when it was sent, the trajectory it names (None: a new one), and what it was given."""

    at: float
    named: str | None
    version: str
    arm: str


class Traffic:
    """Clients that ask until they are told to stop: new trajectories, and turns of named ones in between."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(3)]
        self.seen: list[Seen] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def past(self, moment: float, number: int = 60) -> None:
        """Wait until so many requests that were sent after a moment are answered."""
        until = time.monotonic() + 3 * PATIENCE
        while sum(one.at > moment for one in list(self.seen)) < number:
            assert time.monotonic() < until
            time.sleep(0.01)

    def _ask(self, client: int) -> None:
        turn = client
        while not self._stop.is_set():
            turn += 1
            named = f"mine-{client}-{turn % TRAJECTORIES}" if turn % 2 else None
            at = time.monotonic()
            body = {"model": "m", "messages": [{"role": "user", "content": f"{client} {turn}"}]}
            more = {"x-tfgrpo-trajectory": named} if named is not None else {}
            port = self._ports[turn // 2 % len(self._ports)]
            headers, _ = call(port, "POST", "/v1/chat/completions", body, authorization="Bearer k", **more)
            self.seen.append(Seen(at, named, headers["x-tfgrpo-set"], headers["x-tfgrpo-arm"]))


def deploy(port: int, lesson: str) -> None:
    version = call(port, "POST", "/admin/api/sets/s/versions", {"experiences": [{"text": lesson}]})[1]["version"]
    call(port, "PUT", "/admin/api/sets/s/deployment", {"live": version, "reason": "test"})


@pytest.mark.parametrize(("number", "workers"), [(1, 4), (2, 2)])
def test_all_workers_swap_within_a_second_and_change_no_trajectory_but_by_rollback(
    programs: Programs, url: str, number: int, workers: int
) -> None:
    if number > 1 and url.startswith("sqlite"):
        pytest.skip("replicas share PostgreSQL")
    ports = programs(url, number, workers)
    deploy(ports[0], "Check units.")
    with Traffic(ports) as traffic:
        traffic.past(0.0)
        deploy(ports[0], "Check signs.")
        swapped = time.monotonic()
        traffic.past(swapped + 2 * SECOND)
        # What was sent just before it may be placed just after it.
        asked = time.monotonic() - SECOND / 2
        call(ports[-1], "POST", "/admin/api/sets/s/rollback", {"reason": "test"})
        undone = time.monotonic()
        traffic.past(undone + SECOND)
    new = [one for one in traffic.seen if one.named is None and swapped + SECOND < one.at < asked]
    assert {one.version for one in new} == {"s@2"}
    # Where the store did not answer in time the arm is `unknown`, and the request counts in nothing.
    before = [one for one in traffic.seen if one.named is not None and one.at < asked and one.arm != "unknown"]
    first = {one.named: one.version for one in sorted(before, reverse=True)}
    assert "s@1" in first.values()
    assert [one for one in before if one.version != first[one.named]] == []
    late = [one for one in traffic.seen if one.at > undone + SECOND]
    assert {one.version for one in late} == {"s@1"}


@pytest.mark.parametrize(("number", "workers"), [(1, 4), (2, 2)])
def test_a_withdrawal_reaches_live_requests_and_pinned_ones_on_all_workers_within_a_second(
    programs: Programs, url: str, number: int, workers: int
) -> None:
    if number > 1 and url.startswith("sqlite"):
        pytest.skip("replicas share PostgreSQL")
    ports = programs(url, number, workers)
    with closing(Store.open(url)) as store:
        for source in ("bad", "worse"):
            entry = Experience("e1", f"Skip the {source} units.", (source,))
            store.sets.add_version("s", Library((entry,), 2), status="by hand")
        call(ports[0], "PUT", "/admin/api/sets/s/deployment", {"live": 2})

        def given(pin: str) -> str:
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            more = {"x-tfgrpo-set": pin} if pin else {}
            headers, _ = call(next(turns), "POST", "/v1/chat/completions", body, authorization="Bearer k", **more)
            return headers["x-tfgrpo-set"]

        turns = itertools.cycle(ports)
        assert {given("s@1") for _ in range(40)} | {given("") for _ in range(40)} == {"s@1", "s@2"}
        for source in ("bad", "worse"):
            store.withdrawals.withdraw("source", source, reason="", actor="test", deploy=False)
        withdrawn = time.monotonic()
        while time.monotonic() < withdrawn + SECOND:
            given("s@1")
        # Nothing is left of either version: no request gets a block.
        assert {given(pin) for pin in ("s@1", "") for _ in range(40)} == {"none"}
