"""The user's agent against a real proxy: what it is given, what is recorded, what becomes of one that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.upstreams import Seen, Step, answer, completion
from tfgrpo.agent import Agent
from tfgrpo.agent_runner import AgentRunner, Place
from tfgrpo.errors import BudgetExceeded, UsageError
from tfgrpo.graders import by_name
from tfgrpo.library import from_texts
from tfgrpo.rollouts import Prior, Sampling
from tfgrpo.store import Store
from tfgrpo.types import FIRST_DRAFT, Library, Message, Rollout, Task
from tfgrpo.usage import Ledger, Usage

PRIOR = Prior("s", 0, from_texts(["Say yes."]))
NONE = Prior("s", 0, Library())
TASK = Task("k", (Message("user", "Is it so?"),), "yes")
HERE = "python:tests.tfgrpo.agents_sample"


def policy(seen: Seen) -> Iterator[Step]:
    """Says yes where a lesson tells it to."""
    said = "yes" if "Say yes." in json.dumps(seen.json["messages"]) else "no"
    if seen.json.get("tools") and seen.json["messages"][-1]["role"] != "tool":
        whole = completion("", id_=f"c-{seen.at}")
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        whole["choices"][0]["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
        yield answer(whole)
        return
    yield answer(completion(said, id_=f"c-{seen.at}"))


@pytest.fixture
def proxy(start_proxy: StartProxy, start_upstream: StartUpstream) -> RunningProxy:
    return start_proxy(start_upstream(policy).base_url)


@pytest.fixture
def store(proxy: RunningProxy) -> Iterator[Store]:
    opened = Store.open(proxy.settings.store.url)
    yield opened
    opened.close()


async def made(
    proxy: RunningProxy,
    store: Store,
    function: str,
    *,
    prior: Prior = PRIOR,
    seconds: float = 30.0,
    samples: int = 1,
    ledger: Ledger | None = None,
) -> tuple[Rollout, ...]:
    place = Place(proxy.base_url, store, patience=0.5)
    agent = Agent.load(f"{HERE}:{function}", seconds=seconds)
    async with AgentRunner(agent, place, by_name("exact"), ledger=ledger or Ledger(), advance=lambda _: None) as runner:
        (rollouts,) = await runner.run([TASK], prior, samples=samples, sampling=Sampling(0.7))
    return rollouts


@pytest.mark.parametrize("function", ["ask", "ask_by_sdk", "ask_awaited", "ask_handing_on"])
async def test_an_agent_works_with_the_library_under_test(proxy: RunningProxy, store: Store, function: str) -> None:
    (rollout,) = await made(proxy, store, function)
    assert (rollout.reward, rollout.error, rollout.answer) == (1.0, None, "yes")


async def test_an_agent_is_not_shown_the_right_answer(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "peeking")
    assert rollout.answer == "yes None"


async def test_an_empty_library_is_pinned_as_well(proxy: RunningProxy, store: Store) -> None:
    store.sets.add_version("s", PRIOR.library, status="by hand")
    store.sets.deploy("s", live=1, reason="test", actor="test")
    (rollout,) = await made(proxy, store, "ask", prior=NONE)
    (exchange,) = store.traffic.page(limit=9)
    assert (rollout.reward, exchange.version, exchange.arm) == (0.0, 0, "pinned")


async def test_a_version_that_is_stored_is_pinned_itself(proxy: RunningProxy, store: Store) -> None:
    store.sets.add_version("s", PRIOR.library, status="by hand")
    await made(proxy, store, "ask", prior=Prior("s", 1, PRIOR.library))
    assert [one.version for one in store.traffic.page(limit=9)] == [1]


async def test_the_messages_are_those_that_the_proxy_recorded(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "look")
    assert [message.role for message in rollout.messages] == ["assistant", "tool", "assistant"]
    assert rollout.messages[0].tool_calls[0].name == "look"
    assert rollout.messages[1].text == "it rains"
    assert [one.trajectory for one in store.traffic.page(limit=9)] == [rollout.trajectory] * 2


async def test_the_library_is_in_no_message(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "look")
    assert not [message for message in rollout.messages if "Say yes." in message.text]


async def test_each_rollout_is_a_trajectory_of_its_own(proxy: RunningProxy, store: Store) -> None:
    rollouts = await made(proxy, store, "ask", samples=3)
    assert len({one.trajectory for one in rollouts}) == 3


async def test_an_answer_that_no_model_said_is_graded_and_shown_as_the_last_word(
    proxy: RunningProxy, store: Store
) -> None:
    (rollout,) = await made(proxy, store, "adding")
    assert (rollout.reward, [message.text for message in rollout.messages]) == (0.0, ["yes", "yes and no"])


async def test_an_agent_that_raises_is_a_failed_rollout(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "broken")
    assert (rollout.reward, rollout.error) == (0.0, "the agent raised ValueError: no such room")


async def test_an_agent_that_leaves_the_program_is_a_failed_rollout(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "leaving")
    assert rollout.error is not None
    assert "SystemExit(3)" in rollout.error


async def test_what_an_agent_did_before_it_failed_is_kept(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "late")
    assert (rollout.error, rollout.answer) == ("the agent raised ValueError: too late", "yes")


async def test_an_agent_that_ends_its_process_is_a_failed_rollout(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "exiting_late")
    assert (rollout.reward, rollout.error) == (0.0, "the agent ended before it had answered: exit status 3")
    assert rollout.answer == "yes"


async def test_an_agent_that_hangs_is_a_failed_rollout(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "hanging", seconds=0.05)
    assert (rollout.reward, rollout.error) == (0.0, "the agent took longer than 0.05 s")


async def test_an_awaited_agent_that_hangs_is_a_failed_rollout(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "hanging_awaited", seconds=0.05)
    assert rollout.error == "the agent took longer than 0.05 s"


async def test_an_agent_that_returns_no_text_is_a_failed_rollout(proxy: RunningProxy, store: Store) -> None:
    (rollout,) = await made(proxy, store, "seven")
    assert rollout.error == "the agent returned int; an answer is a text"


async def test_an_agent_that_never_sends_the_library_along_ends_the_run(proxy: RunningProxy, store: Store) -> None:
    with pytest.raises(UsageError, match="send the headers with each request"):
        await made(proxy, store, "forgetful")


async def test_an_agent_that_pins_something_else_ends_the_run(proxy: RunningProxy, store: Store) -> None:
    with pytest.raises(UsageError, match="ran without the library under test"):
        await made(proxy, store, "wilful")


async def test_drafts_are_gone_at_the_end_and_never_given_again(proxy: RunningProxy, store: Store) -> None:
    await made(proxy, store, "ask")
    await made(proxy, store, "ask", prior=Prior("s", 0, from_texts(["Say no."])))
    assert [one.version for one in reversed(store.traffic.page(limit=9))] == [FIRST_DRAFT + 1, FIRST_DRAFT + 2]
    assert store.sets.names() == ["s"]
    assert not store.sets.versions("s")


async def test_what_an_agent_used_is_accounted_for(proxy: RunningProxy, store: Store) -> None:
    ledger = Ledger()
    (rollout,) = await made(proxy, store, "look", ledger=ledger)
    used = ledger.stages()["rollout"]
    assert used.calls == 2
    assert (used.prompt_tokens, used.completion_tokens) == (rollout.prompt_tokens, rollout.completion_tokens)


async def test_no_agent_is_started_once_the_budget_is_used_up(proxy: RunningProxy, store: Store) -> None:
    ledger = Ledger(max_tokens=1)
    ledger.add("rollout", Usage(1, 0, 1, 1))
    with pytest.raises(BudgetExceeded):
        await made(proxy, store, "ask", ledger=ledger)
    assert not store.traffic.page(limit=1)


async def test_a_proxy_that_does_not_answer_is_named(proxy: RunningProxy, store: Store) -> None:
    proxy.stop()
    with pytest.raises(UsageError, match=rf"no proxy answers at {proxy.base_url}.*training\.proxy"):
        await made(proxy, store, "ask")


async def test_something_else_than_a_proxy_is_named(store: Store, start_upstream: StartUpstream) -> None:
    other = start_upstream(lambda _: [answer({}, status=404)])
    place = Place(other.base_url, store)
    runner = AgentRunner(Agent(f"{HERE}:ask"), place, by_name("exact"), ledger=Ledger(), advance=lambda _: None)
    with pytest.raises(UsageError, match="answered 404"):
        await runner.__aenter__()
