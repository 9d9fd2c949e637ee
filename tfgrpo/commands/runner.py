"""Which runner a command makes rollouts with: one completion each, or the user's own agent against a proxy."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tfgrpo.agent import Agent
from tfgrpo.agent_runner import AgentRunner, Place
from tfgrpo.commands.session import named
from tfgrpo.configuration import Configuration, Training
from tfgrpo.errors import UsageError
from tfgrpo.graders import Grader
from tfgrpo.llm import Llm
from tfgrpo.rollouts import ChatRunner, Runner
from tfgrpo.store import Store
from tfgrpo.usage import Ledger, price_of

CHAT = "chat"


def name_of(arguments: Namespace, training: Training) -> str:
    """Return the name of the runner that is asked for."""
    return str(arguments.runner or training.runner)


def is_agent(arguments: Namespace, training: Training) -> bool:
    """Whether the user's own agent makes rollouts: it can answer tool calls, and one completion cannot."""
    return name_of(arguments, training) != CHAT


@asynccontextmanager
async def running(
    arguments: Namespace,
    settings: Configuration,
    store: Store,
    *,
    policy: Llm,
    judge: Grader,
    ledger: Ledger,
    advance: Callable[[str], None],
) -> AsyncIterator[Runner]:
    """Give the runner that is asked for, for as long as it is needed. `policy` is what `chat` asks.

    Raises:
        UsageError: the agent cannot be loaded, or there is no proxy for it.
    """
    training = settings.training
    if not is_agent(arguments, training):
        yield ChatRunner(policy, judge, advance, settings.training.selected)
        return
    name = name_of(arguments, training)
    agent = Agent.load(name, seconds=training.rollout_seconds, at_once=training.concurrency)
    if training.proxy is None:
        raise UsageError(
            f"the agent {agent.name} needs a proxy to run against: set training.proxy, such as "
            "http://127.0.0.1:8000/v1, to a tfgrpo-proxy on the same store",
            field="training.proxy",
        )
    place = Place(training.proxy, store)
    price = price_of(named(training.policy, training.optimizer, "training.policy"))
    async with AgentRunner(agent, place, judge, ledger=ledger, advance=advance, price=price) as runner:
        yield runner
