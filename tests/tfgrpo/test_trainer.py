from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from tests.tfgrpo.scripted import JSON, Endpoint, Reply, sections, serving, stage
from tfgrpo.errors import BudgetExceeded
from tfgrpo.graders import by_name
from tfgrpo.library import Limits
from tfgrpo.llm import Llm, Patience
from tfgrpo.memo import Memo
from tfgrpo.optimizer import Optimizer
from tfgrpo.rollouts import ChatRunner
from tfgrpo.trainer import Learned, Practice, Trainer
from tfgrpo.types import Experience, Group, Library, Message, Rollout, Task
from tfgrpo.usage import Ledger


class Silent:
    def begin(self, stage: str, total: int) -> None: ...

    def advance(self, stage: str) -> None: ...


def group(number: int, *, rewards: tuple[float, ...] = (1.0, 0.0)) -> Group:
    task = Task(f"g{number:02}", (Message("user", f"task {number}"),))
    rollouts = [
        Rollout(
            f"t{number}.{index}", (Message("assistant", f"did {'this' if reward else 'that'} for {number}"),), reward
        )
        for index, reward in enumerate(rewards)
    ]
    return Group(task.key, task, "m", "s", 0, tuple(rollouts))


def optimizer(request: JSON) -> Reply:
    """A lesson per task; consolidation adds every proposal."""
    said = sections(request)
    match stage(request):
        case "contrast":
            number = re.findall(r"task (\d+)", said)[0]
            return json.dumps({"analysis": "a", "lessons": [f"Keep{number} going{number}."]})
        case "propose":
            lessons = re.findall(r"^- (.+)$", said, re.MULTILINE)
            return json.dumps(
                {"operations": [{"why": "w", "operation": "add", "ids": [], "text": one} for one in lessons]}
            )
        case _:
            return json.dumps({"operations": [json.loads(line) for line in said.splitlines() if line.startswith("{")]})


async def learned(
    endpoint: Endpoint,
    groups: list[Group],
    *,
    memo: Memo | None = None,
    ledger: Ledger | None = None,
    batch_size: int = 100,
) -> Learned:
    async with Llm(endpoint.model(), ledger=ledger or Ledger(), memo=memo, patience=Patience(1)) as llm:
        trainer = Trainer(Optimizer(llm), Limits(), Silent(), batch_size)
        return await trainer.learn(groups, Library((Experience("e4", "Old."),), 9))


async def test_what_groups_teach_is_added_with_fresh_ids_and_provenance() -> None:
    async with serving(optimizer) as endpoint:
        result = await learned(endpoint, [group(1), group(2)])
    assert result.library.experiences == (
        Experience("e4", "Old."),
        Experience("e9", "Keep1 going1.", ("g01",)),
        Experience("e10", "Keep2 going2.", ("g02",)),
    )


async def test_groups_that_do_not_contrast_cost_no_call() -> None:
    async with serving(optimizer) as endpoint:
        result = await learned(endpoint, [group(1, rewards=(1.0, 1.0)), group(2, rewards=(0.5,))])
    assert (result.applied, endpoint.requests) == (0, [])


async def test_the_order_in_which_groups_are_given_does_not_matter() -> None:
    groups = [group(number) for number in range(8)]
    async with serving(optimizer) as endpoint:
        results = [await learned(endpoint, some) for some in (groups, groups[::-1])]
    assert results[0].library == results[1].library


async def test_each_batch_ends_in_one_consolidation_and_builds_on_the_one_before() -> None:
    async with serving(optimizer) as endpoint:
        result = await learned(endpoint, [group(number) for number in range(5)], batch_size=2)
    last = [sections(request) for request in endpoint.requests if stage(request) == "consolidate"]
    assert (len(last), len(result.steps), "Keep3 going3." in last[2].partition("<operations>")[0]) == (3, 3, True)


async def test_a_run_that_ended_early_goes_on_without_paying_twice_and_ends_the_same(tmp_path: Path) -> None:
    groups = [group(number) for number in range(6)]
    async with serving(optimizer) as endpoint:
        whole = await learned(endpoint, groups)
        calls = len(endpoint.requests)
        memo = Memo(tmp_path / "memo")
        with pytest.raises(BudgetExceeded):
            await learned(endpoint, groups, memo=memo, ledger=Ledger(max_tokens=60))
        resumed = await learned(endpoint, groups, memo=memo)
        memo.close()
    assert (resumed.library, len(endpoint.requests)) == (whole.library, 2 * calls)


async def test_an_answer_nobody_can_use_is_told_and_the_rest_is_learned() -> None:
    def reply(request: JSON) -> Reply:
        broken = stage(request) == "contrast" and "task 1" in sections(request)
        return "I cannot say." if broken else optimizer(request)

    async with serving(reply) as endpoint:
        result = await learned(endpoint, [group(1), group(2)])
    assert (result.applied, result.steps[0].faults[0].startswith("group g01: contrast:")) == (1, True)


async def test_practice_makes_its_groups_under_the_library_as_it_grows() -> None:
    turns = itertools.cycle(["Answer: yes", "Answer: no"])

    def reply(request: JSON) -> Reply:
        if request["model"] == "policy":
            return next(turns)
        return optimizer(request)

    tasks = [Task(f"k{n}", (Message("user", f"task {n}"),), "yes") for n in range(2)]
    async with (
        serving(reply) as endpoint,
        Llm(endpoint.model(), ledger=Ledger()) as llm,
        Llm(endpoint.model("policy"), ledger=Ledger()) as policy,
    ):
        runner = ChatRunner(policy, by_name("exact"), lambda _: None)
        practice = Practice(runner, "s", 1, group_size=4, epochs=2)
        result = await Trainer(Optimizer(llm), Limits(), Silent()).practise(tasks, Library(), practice)
    asked = [request["messages"] for request in endpoint.requests if request["model"] == "policy"]
    assert [len(step.telling) for step in result.steps] == [2, 2]
    assert ["Keep0 going0." in messages[0]["content"] for messages in asked] == [False] * 8 + [True] * 8


async def test_an_empty_answer_costs_its_group_only() -> None:
    def reply(request: JSON) -> Reply:
        empty = stage(request) in ("contrast", "propose") and "1" in sections(request).partition("<rollout")[0]
        return "" if empty else optimizer(request)

    async with serving(reply) as endpoint:
        result = await learned(endpoint, [group(1), group(2)])
    assert (result.applied, [fault.split(":")[0] for fault in result.steps[0].faults]) == (1, ["group g01"])


async def test_with_votes_the_last_epoch_adds_nothing_and_what_lessons_do_not_confirm_is_gone() -> None:
    def reply(request: JSON) -> Reply:
        if request["model"] == "policy":
            return f"Answer: {'yes' if request['seed'] % 2 else 'no'}"
        said = sections(request)
        if stage(request) == "contrast":
            return json.dumps({"analysis": "a", "lessons": ["Say yes."]})
        if stage(request) == "propose" and "] Say yes." in said:
            known = re.findall(r"\[(e\d+)\] Say yes", said)
            more = {"why": "w", "operation": "add", "ids": [], "text": "Say thanks."}
            return json.dumps({"operations": [{"why": "w", "operation": "keep", "ids": known, "text": None}, more]})
        if stage(request) == "consolidate" and "Say yes." in said:
            texts = ["Say yes.", "Say please."]
            return json.dumps(
                {"operations": [{"why": "w", "operation": "add", "ids": [], "text": one} for one in texts]}
            )
        return optimizer(request)

    tasks = [Task(f"k{n}", (Message("user", f"task {n}"),), "yes") for n in range(60)]
    async with (
        serving(reply) as endpoint,
        Llm(endpoint.model(), ledger=Ledger()) as llm,
        Llm(endpoint.model("policy"), ledger=Ledger()) as policy,
    ):
        runner = ChatRunner(policy, by_name("exact"), lambda _: None)
        practice = Practice(runner, "s", 1, group_size=6, epochs=2, support=0.05)
        result = await Trainer(Optimizer(llm), Limits(), Silent()).practise(tasks, Library(), practice)
    assert [len(step.applied) for step in result.steps[:2]] == [2, 0]
    assert [one.text for one in result.library.experiences] == ["Say yes."]
    assert [one.operation.text for step in result.steps for one in step.taken_back] == ["Say please."]
