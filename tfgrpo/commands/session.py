"""What a command that asks models needs around it: configuration, store, and an end on Ctrl-C that loses nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from argparse import Namespace
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tfgrpo.configuration import Configuration, Model, Section, load
from tfgrpo.errors import UsageError
from tfgrpo.graders import Grader, by_name
from tfgrpo.modes import Mode
from tfgrpo.store import Store

T = TypeVar("T")


def configuration(arguments: Namespace, *sections: Section) -> Configuration:
    """Return the configuration's sections that a command needs."""
    return load(arguments.config, environ=os.environ, sections=sections)


@contextmanager
def opened(settings: Configuration, *, migrate: bool = False) -> Iterator[Store]:
    """Open the store for as long as the command runs."""
    store = Store.open(settings.store.url, migrate=migrate)
    try:
        yield store
    finally:
        store.close()


def named(model: Model, other: Model, key: str) -> Model:
    """Return `model`, or where it names none `other`; UsageError when neither does."""
    chosen = model if model.model else other
    if not chosen.model:
        raise UsageError(
            f"no model is configured: set {key}.model (and base_url, api_key) in config.yaml, or "
            f"TFGRPO_{key.upper().replace('.', '__')}__MODEL in the environment",
            field=f"{key}.model",
        )
    return chosen


def grader(arguments: Namespace, settings: Configuration) -> Grader:
    """Return the grader that was asked for."""
    name = arguments.grader or settings.training.grader
    if name is None:
        raise UsageError("no grader is named: give --grader, or set training.grader", field="grader")
    return by_name(name)


def mode(arguments: Namespace, settings: Configuration) -> Mode:
    """Return what the optimizer may see of how rollouts were judged."""
    return "neither" if arguments.no_ground_truth else settings.training.ground_truth


def interruptible(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `work` to its end, or until SIGINT or SIGTERM: then it is cancelled and KeyboardInterrupt raised."""

    async def watched() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        try:
            return await work()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
