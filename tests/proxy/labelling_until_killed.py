"""A program for a test: stores labels until it is killed, and says of each when it was acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import sys

from proxy.label_writer import LabelWriter
from tests.proxy.examples import label
from tfgrpo.store import Store


async def post(writer: LabelWriter, worker: int) -> None:
    for number in itertools.count():
        made = label(f"{worker}-{number}")
        await writer.add([made])
        sys.stdout.write(f"{made.feedback_id}\n")
        sys.stdout.flush()


async def main() -> None:
    writer = LabelWriter(Store.open(sys.argv[1]))
    writer.start()
    await asyncio.gather(*(post(writer, worker) for worker in range(8)))


if __name__ == "__main__":
    asyncio.run(main())
