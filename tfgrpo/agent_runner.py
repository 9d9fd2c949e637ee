"""Rollouts by the user's own agent, run against a proxy that is up, and recorded by it like any other traffic.

Headers pin the library under test and name the trajectory. The reward is the grader's, on the answer the agent
returned; what the optimizer reads is what the proxy recorded. A rollout that was not recorded with the library proves
nothing about it, and has failed.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

import aiohttp
from msgspec.structs import replace

from tfgrpo.agent import Agent
from tfgrpo.configuration import Price
from tfgrpo.errors import UsageError
from tfgrpo.graders import Grader
from tfgrpo.processes import NoAnswer
from tfgrpo.rollouts import Prior, Sampling
from tfgrpo.store import Store
from tfgrpo.tasks import gather
from tfgrpo.traffic import turns_of
from tfgrpo.trajectories import conversation, opening
from tfgrpo.types import EMPTY_VERSION, Exchange, Library, Message, Rollout, Task
from tfgrpo.usage import Ledger, Tokens, Usage, cost

UNSEEN: Final = "it answered, but "
"""How the error begins of a rollout that says nothing about the library that was pinned."""
LOOK: Final = 0.2
"""Seconds between two looks at the store, several times what the proxy waits before it writes."""
_KEPT_BACK: Final = 5.0
"""Seconds by which the clocks of this machine and the proxy's may differ."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent works: the base URL of a proxy, and the store that this proxy records in."""

    base_url: str
    store: Store
    patience: float = 5.0
    """Seconds in which the proxy must say that it is there, and have recorded what it answered."""


class AgentRunner:
    """A `Runner` that has each rollout made by `agent`. Use as `async with`: at its end the agent's processes are
    ended and drafts deleted.

    The agent chooses its model and how it samples; a temperature or seed of the run does not reach it.
    """

    def __init__(
        self,
        agent: Agent,
        place: Place,
        grader: Grader,
        *,
        ledger: Ledger,
        advance: Callable[[str], None],
        price: Price | None = None,
    ) -> None:
        self._agent = agent
        self._place = place
        self._grader = grader
        self._ledger = ledger
        self._advance = advance
        self._price = price
        self._free = asyncio.Semaphore(agent.at_once)
        self._naming = asyncio.Lock()
        self._models: set[str] = set()
        self._drafts: dict[tuple[str, Library], int] = {}

    @property
    def model(self) -> str:
        """The models that the agent was seen to use, its own name before it used any."""
        return ", ".join(sorted(self._models)) or self._agent.name

    async def __aenter__(self) -> Self:
        await check(self._place.base_url, patience=self._place.patience)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._agent.close()
        finally:
            for (set_name, _), draft in self._drafts.items():
                self._place.store.sets.drop_drafts(set_name, [draft])

    async def run(
        self, tasks: Sequence[Task], prior: Prior, *, samples: int, sampling: Sampling
    ) -> list[tuple[Rollout, ...]]:
        """Return `samples` rollouts of each task under `prior`; see `Runner`.

        Raises:
            UsageError: the agent answers, but of no rollout anything was recorded with the library under test.
        """
        async with self._naming:
            version = await asyncio.to_thread(self._version, prior)
        made = await gather(self._rollout(task, prior.set, version, sampling) for task in tasks for _ in range(samples))
        answered = [one for one in made if one.error is None or one.error.startswith(UNSEEN)]
        if answered and all(one.error is not None for one in answered):
            raise UsageError(f"{self._agent.name}: {answered[0].error}", field="runner")
        return [tuple(made[at : at + samples]) for at in range(0, len(made), samples)]

    def _version(self, prior: Prior) -> int:
        """Return the version to pin: that of the prior where it is stored as it is, else a draft."""
        sets, library = self._place.store.sets, prior.library
        if not library.experiences:
            return EMPTY_VERSION
        stored = {one.version: one.library for one in sets.versions(prior.set)}.get(prior.version)
        if stored is not None and stored.experiences == library.experiences:
            return prior.version
        key = (prior.set, library)
        if key not in self._drafts:
            self._drafts[key] = sets.add_draft(prior.set, library)
        return self._drafts[key]

    async def _rollout(self, task: Task, set_name: str, version: int, sampling: Sampling) -> Rollout:
        async with self._free:
            self._ledger.check()
            name, since = f"rollout-{secrets.token_hex(12)}", time.time() - _KEPT_BACK
            headers = {"x-tfgrpo-set": f"{set_name}@{version}", "x-tfgrpo-trajectory": name}
            answer, error, place = "", None, self._place
            try:
                # Whoever does a task is not shown its right answer.
                asked = replace(task, reference=None)
                answer = await self._agent.answer(asked, place.base_url, headers)
            except NoAnswer as failed:
                error = str(failed)
            # What a failed attempt did is evidence as well, and was paid for; it may have done nothing.
            found = await self._recorded(set_name, name, since, patience=LOOK if error else place.patience)
            rollout = await asyncio.to_thread(self._read, task, name, found, sampling.stage)
            self._advance(sampling.stage)
            if error is not None:
                return replace(rollout, reward=0.0, error=error)
            rollout = _ending(rollout, answer)
            if (unseen := _unseen(found, version)) is not None:
                return replace(rollout, reward=0.0, error=unseen)
            grade = await self._grader.grade(task, rollout)
            return replace(rollout, reward=grade.reward, comments=(grade.critique,) if grade.critique else ())

    async def _recorded(self, set_name: str, name: str, since: float, *, patience: float) -> list[Exchange]:
        """Return what was recorded of a trajectory once two looks see the same; nothing when time is over."""
        loop, traffic = asyncio.get_running_loop(), self._place.store.traffic
        end, seen = loop.time() + patience, 0
        while True:
            found = await asyncio.to_thread(traffic.named, set_name, name, since=since)
            if (found and len(found) == seen) or loop.time() >= end:
                return found
            seen = len(found)
            await asyncio.sleep(LOOK)

    def _read(self, task: Task, name: str, found: Sequence[Exchange], stage: str) -> Rollout:
        """Return what was recorded as a rollout without a reward, and enter in the ledger what it took."""
        bodies = self._place.store.traffic.bodies([one.id for one in found])
        self._models |= {one.model for one in found if one.model}
        prompt = sum(one.prompt_tokens or 0 for one in found)
        completion = sum(one.completion_tokens or 0 for one in found)
        known = all(one.prompt_tokens is not None and one.completion_tokens is not None for one in found)
        usd = cost(self._price, Tokens(prompt, completion)) if known else None
        self._ledger.add(stage, Usage(len(found), 0, prompt, completion, usd))
        turns = turns_of(found, bodies)
        said, asked = conversation(turns), opening(turns)
        # The task stands before each rollout already; an agent may ask its models something else first.
        begins = bool(asked) and asked[-1].text == task.messages[-1].text
        messages = said[len(asked) :] if begins else said
        if not known:
            return Rollout(name, messages)
        return Rollout(name, messages, prompt_tokens=prompt, completion_tokens=completion, usd=usd)


async def check(base_url: str, *, patience: float) -> None:
    """Raise UsageError when no proxy of ours answers at `base_url`."""
    parts = urlsplit(base_url)
    health = f"{parts.scheme}://{parts.netloc}/health/liveliness"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=patience)) as session,
            session.get(health) as response,
        ):
            said = None if response.status == 200 else f"{health} answered {response.status}"  # noqa: PLR2004 - OK
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
    if said is not None:
        raise UsageError(
            f"no proxy answers at {base_url} ({said}): start tfgrpo-proxy on the same store, or correct training.proxy",
            field="training.proxy",
        )


def _ending(rollout: Rollout, answer: str) -> Rollout:
    """The rollout with what the agent returned as its last word, where that is not what a model said last."""
    if rollout.messages and rollout.answer.strip() == answer.strip():
        return rollout
    return replace(rollout, messages=(*rollout.messages, Message("assistant", answer)))


def _unseen(found: Sequence[Exchange], version: int) -> str | None:
    """Return why a rollout that answered says nothing about the library that was pinned."""
    asked = [one for one in found if one.dialect is not None and one.outcome == "complete"]
    if not asked:
        return f"{UNSEEN}nothing was recorded of it: send the headers with each request, to a proxy on this store"
    other = next((one for one in asked if one.version != version or one.arm != "pinned"), None)
    if other is None:
        return None
    return f"{UNSEEN}a request to {other.path} ran without the library under test{f': {other.note}' * bool(other.note)}"
