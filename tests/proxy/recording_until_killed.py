"""A program for a test: records one exchange after the other until it is killed, and says when it queued which."""

from __future__ import annotations

import itertools
import sys
import time

from proxy.recording import Recorder
from tests.proxy.examples import exchange
from tfgrpo.store import Store
from tfgrpo.types import Bodies


def main() -> None:
    recorder = Recorder(Store.open(sys.argv[1]))
    recorder.start()
    pace = time.monotonic()
    for number in itertools.count():
        recorder.put(exchange(f"ex-{number}"), Bodies(request=b"q" * 500, response=b"a" * 500))
        sys.stdout.write(f"{number} {time.time()}\n")
        sys.stdout.flush()
        pace += 0.0005
        time.sleep(max(0.0, pace - time.monotonic()))


if __name__ == "__main__":
    main()
