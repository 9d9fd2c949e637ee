from __future__ import annotations

from collections.abc import Callable

from tests.tfgrpo.scripted import JSON, Reply, refusal, serving
from tfgrpo.graders import by_name
from tfgrpo.library import Limits, from_texts, strip
from tfgrpo.llm import Llm
from tfgrpo.rollouts import ChatRunner, Prior, Sampling, inject, seed_of
from tfgrpo.types import Message, Rollout, Task
from tfgrpo.usage import Ledger

PRIOR = Prior("s", 1, from_texts(["Check units."]))
BLOCK = PRIOR.block
NONE = Prior("s", 0, from_texts([]))
ASK = Message("user", "How far?")
TASKS = [Task(f"k{number}", (Message("user", f"task {number}"),), str(number)) for number in range(3)]


async def made(
    reply: Callable[[], Reply] | None = None, prior: Prior = PRIOR
) -> tuple[list[tuple[Rollout, ...]], list[JSON]]:
    def answer(request: JSON) -> Reply:
        return reply() if reply is not None else str(request["messages"][-1]["content"].replace("task ", "Answer: "))

    async with serving(answer) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        runner = ChatRunner(llm, by_name("exact"), lambda _: None)
        rollouts = await runner.run(TASKS, prior, samples=2, sampling=Sampling(0.3, 10))
    return rollouts, endpoint.requests


async def test_a_library_over_the_limits_is_chosen_from_for_each_task() -> None:
    prior = Prior("s", 1, from_texts(["for task 0", "for task 1", "for task 2"]))
    async with serving(lambda _: "Answer: 0") as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        runner = ChatRunner(llm, by_name("exact"), lambda _: None, Limits(entries=1))
        await runner.run(TASKS, prior, samples=2, sampling=Sampling(0.3, 10))
    given = {(r["messages"][1]["content"], r["messages"][0]["content"].splitlines()[1]) for r in endpoint.requests}
    assert given == {(f"task {number}", f"for task {number}") for number in range(3)}


def test_the_block_becomes_a_system_message_where_there_is_none() -> None:
    assert inject([ASK], BLOCK)[0] == {"role": "system", "content": BLOCK}


def test_the_block_stands_after_the_text_of_a_system_message() -> None:
    sent = inject([Message("developer", "Be brief."), ASK], BLOCK)
    assert sent[0] == {"role": "developer", "content": f"Be brief.\n\n{BLOCK}"}


def test_taking_the_block_out_again_is_the_identity() -> None:
    assert strip(inject([Message("system", "Be brief."), ASK], BLOCK)[0]["content"]) == "Be brief."


def test_an_empty_library_changes_nothing() -> None:
    assert inject([ASK], "") == [{"role": "user", "content": "How far?"}]


async def test_each_task_gets_its_samples_in_order() -> None:
    rollouts, _ = await made()
    assert [[one.trajectory for one in some] for some in rollouts] == [[f"k{n}.0", f"k{n}.1"] for n in range(3)]


async def test_each_rollout_is_rewarded_by_the_grader() -> None:
    rollouts, _ = await made(lambda: "Answer: 1")
    assert [[one.reward for one in some] for some in rollouts] == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]


async def test_samples_carry_seeds_that_do_not_depend_on_the_block() -> None:
    seeds = [sorted((r["messages"][-1]["content"], r["seed"]) for r in (await made(prior=p))[1]) for p in (PRIOR, NONE)]
    assert seeds[0] == seeds[1] == [(f"task {n}", s) for n in range(3) for s in sorted(seed_of(10, i) for i in (0, 1))]


async def test_a_rollout_that_fails_is_a_result_with_reward_zero() -> None:
    rollouts, _ = await made(lambda: refusal(400, "too long"))
    assert (rollouts[0][0].reward, "too long" in str(rollouts[0][0].error)) == (0.0, True)


def test_neighbouring_seeds_share_no_samples() -> None:
    seeds = [{seed_of(seed, sample) for sample in range(32)} for seed in range(8)]
    assert len(set().union(*seeds)) == 8 * 32
    assert all(0 <= one < 2**31 for some in seeds for one in some)


async def test_a_task_is_asked_with_its_own_parameters() -> None:
    task = Task("k", (ASK,), "5", parameters={"max_tokens": 9, "stop": ["."], "temperature": 0, "model": "other"})
    async with serving(lambda _: "5") as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        runner = ChatRunner(llm, by_name("exact"), lambda _: None)
        await runner.run([task], NONE, samples=1, sampling=Sampling(0.3))
    (asked,) = endpoint.requests
    assert (asked["max_tokens"], asked["stop"], asked["temperature"], asked["model"]) == (9, ["."], 0.3, "tester")
