"""What a command that asks models needs around it: configuration, store, and an end on Ctrl-C that loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, redirect_stdout
from dataclasses import replace
from typing import Any, TypeVar

from tfgrpo import gym
from tfgrpo import teaching as teachers
from tfgrpo.commands.output import note
from tfgrpo.configuration import Configuration, GraderSettings, Model, Section, Training, load
from tfgrpo.errors import UsageError
from tfgrpo.graders import Grader, configured
from tfgrpo.graders.counting import Counting
from tfgrpo.graders.judge import Judge
from tfgrpo.llm import Llm
from tfgrpo.memo import Memo
from tfgrpo.modes import Mode
from tfgrpo.own_checkers import Own
from tfgrpo.store import Rules, Store
from tfgrpo.teaching import Teaching
from tfgrpo.usage import Ledger
from tfgrpo.weighing import Metric, Metrics

T = TypeVar("T")


def configuration(arguments: Namespace, *sections: Section) -> Configuration:
    """Return the configuration's sections that a command needs."""
    return load(arguments.config, environ=os.environ, sections=sections)


@contextmanager
def opened(settings: Configuration, *, migrate: bool = False) -> Iterator[Store]:
    """Open the store for as long as the command runs."""
    rules = Rules(secrets=settings.secrets, approval=settings.training.approval == "required")
    store = Store.open(settings.store.url, migrate=migrate, rules=rules)
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
    """Return the grader that was asked for; tasks of reasoning-gym alone need none."""
    chosen = _chosen(arguments, settings)
    return Own() if chosen is None else configured(chosen, seconds=settings.training.grader_seconds)


def spelt(arguments: Namespace, settings: Configuration) -> str:
    """Return the grader's name with its arguments and no secret: with another rubric it is another grader."""
    chosen = _chosen(arguments, settings)
    if chosen is None:
        return Own().name
    given = chosen.model_dump(mode="json", exclude_defaults=True, exclude={"model": {"api_key"}})
    return chosen.name if len(given) == 1 else json.dumps(given, sort_keys=True)


@asynccontextmanager
async def judging(grader: Grader, training: Training, ledger: Ledger, memo: Memo | None) -> AsyncIterator[Grader]:
    """Yield the grader as a run uses it: with a model where it is a judge, and its failures counted.

    Raises:
        GraderError: it could judge none of the rollouts it was given.
    """
    async with AsyncExitStack() as stack:
        if isinstance(grader, Judge):
            llm = Llm(judge_of(training), ledger=ledger, memo=memo, concurrency=training.concurrency)
            grader = replace(grader, llm=await stack.enter_async_context(llm))
        counting = Counting(grader if isinstance(grader, Own) else Own(grader, training.grader_seconds))
        stack.push_async_callback(counting.close)
        yield counting
        counting.check()
        if said := counting.report():
            note(said)


def judge_of(training: Training) -> Model:
    """Return the model that judges: the grader's own, else the optimizer's."""
    own = training.grader.model if training.grader is not None else None
    return own or named(training.optimizer, training.policy, "training.optimizer")


def metrics(settings: Configuration) -> Metrics:
    """Return how the labels of several metrics come to a reward."""
    return {name: Metric(one.weight, one.worst, one.best) for name, one in settings.training.metrics.items()}


def teaching(settings: Configuration, set_name: str | None) -> Teaching:
    """Return whose traffic teaches a set, and whose labels count."""
    return teachers.of_set(set_name, settings.apps, settings.safety)


def mode(arguments: Namespace, settings: Configuration) -> Mode:
    """Return what the optimizer may see of how rollouts were judged."""
    return "neither" if arguments.no_ground_truth else settings.training.ground_truth


def interruptible(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `work` to its end, or until SIGINT or SIGTERM: then it is cancelled and KeyboardInterrupt raised.

    What a user's grader or agent prints meanwhile goes to stderr: stdout is for the command's result.
    """

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
        with redirect_stdout(sys.stderr):
            return asyncio.run(watched())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _chosen(arguments: Namespace, settings: Configuration) -> GraderSettings | None:
    """Return the grader of the command line, else of the configuration, whose arguments hold for the one it names.

    None where the data bring their own.
    """
    chosen = settings.training.grader
    if arguments.grader is not None and (chosen is None or chosen.name != arguments.grader):
        return GraderSettings(name=arguments.grader)
    if chosen is None and gym.named(str(arguments.data)) is None:
        raise UsageError("no grader is named: give --grader, or set training.grader", field="grader")
    return chosen
