"""Who looks after the workers replaces those that ended, and nobody else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from uvicorn.supervisors.multiprocess import SIGNALS

from proxy.server import Workers, bind, configured
from proxy.settings import Server


@pytest.fixture
def workers() -> Iterator[Workers]:
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    server = Server(port=0, workers=2)
    listening = bind(server)
    made = Workers(configured("proxy.app:create", server, factory=True, log=None), [listening])
    made.config.timeout_worker_healthcheck = 0
    try:
        made.init_processes()
        yield made
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for one in made.processes:
            one.kill()
            one.join()
        listening.close()


def test_a_worker_that_gives_no_sign_of_life_keeps_what_it_holds_and_one_that_ended_is_replaced(
    workers: Workers,
) -> None:
    slow, dead = (one.pid for one in workers.processes)
    assert slow is not None
    assert dead is not None
    os.kill(slow, signal.SIGSTOP)
    workers.keep_subprocess_alive()
    assert {one.pid for one in workers.processes} == {slow, dead}
    os.kill(dead, signal.SIGKILL)
    workers.processes[1].join()
    workers.keep_subprocess_alive()
    assert slow in {one.pid for one in workers.processes}
    assert dead not in {one.pid for one in workers.processes}
    assert all(one.process.is_alive() for one in workers.processes)
