from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.tfgrpo.scripted import JSON, Reply, refusal, sections, serving, stage
from tfgrpo.critique import MOST_ROLLOUTS, SHORT, Critic, Critique, chosen
from tfgrpo.llm import Llm
from tfgrpo.optimizer import Optimizer
from tfgrpo.transcripts import transcript
from tfgrpo.types import Experience, Group, Library, Message, Operation, Refusal, Rollout, Task, ToolCall
from tfgrpo.usage import Ledger

T = TypeVar("T")
LIBRARY = Library((Experience("e1", "Check units."),), 2)


def rollout(number: int, text: str, reward: float | None, *, comments: tuple[str, ...] = ()) -> Rollout:
    return Rollout(f"t{number}", (Message("assistant", text),), reward, comments)


def group(*rollouts: Rollout, key: str = "g1", reference: str | None = None) -> Group:
    task = Task(key, (Message("system", "Be brief."), Message("user", "How far?")), reference)
    return Group(key, task, "m", "s", 1, rollouts)


async def critic(
    reply: Callable[[JSON], Reply],
    groups: Sequence[Group],
    given: dict[int, Library] | None = None,
    *,
    reserve: int | None = 8_000,
) -> tuple[list[Critique], list[JSON]]:
    async with serving(reply) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        critic = Critic(Optimizer(llm, reserve=reserve), given or {}, lambda _: None)
        critiques = await critic.lessons(await critic.summaries(groups), LIBRARY)
        critiques = await critic.proposals(critiques, LIBRARY, [Refusal(Operation("add", (), "Old."), "too long")])
    return critiques, endpoint.requests


def optimizer(request: JSON) -> Reply:
    match stage(request):
        case "summarise":
            return "It went on and on."
        case "contrast":
            return json.dumps({"analysis": "a", "lessons": ["Convert first."]})
        case _:
            return json.dumps({"operations": [{"why": "w", "operation": "add", "ids": [], "text": "Convert first."}]})


def of_stage(requests: Sequence[JSON], name: str) -> list[str]:
    return [sections(request) for request in requests if stage(request) == name]


GOOD, BAD = rollout(1, "I converted. Answer: 5", 1.0), rollout(2, "Answer: 7", 0.25)


async def test_a_short_answer_is_its_own_summary() -> None:
    _, requests = await critic(optimizer, [group(GOOD, BAD)])
    assert [stage(request) for request in requests] == ["contrast", "propose"]


async def test_a_long_answer_is_summarised() -> None:
    _, requests = await critic(optimizer, [group(GOOD, rollout(2, "x" * (SHORT + 1), 0.0))])
    assert '<rollout number="2" reward="0.0">\nIt went on and on.\n</rollout>' in of_stage(requests, "contrast")[0]


async def test_a_rollout_with_tools_is_summarised_with_its_calls() -> None:
    call = Message("assistant", "", (ToolCall("c1", "search", '{"q": 1}'),))
    tools = Rollout("t2", (call, Message("tool", "found", tool_call_id="c1"), Message("assistant", "done")), 0.0)
    _, requests = await critic(optimizer, [group(GOOD, tools)])
    assert '(calls search with {"q": 1})\n\n[result of a tool]\nfound' in of_stage(requests, "summarise")[0]


async def test_a_summary_sees_the_library_that_its_rollout_had() -> None:
    given = {1: Library((Experience("e9", "Think twice."),), 10)}
    _, requests = await critic(optimizer, [group(GOOD, rollout(2, "x" * (SHORT + 1), 0.0))], given)
    assert "<library>\n[e9] Think twice.\n</library>" in of_stage(requests, "summarise")[0]


async def test_a_very_long_rollout_is_cut_in_the_middle() -> None:
    _, requests = await critic(optimizer, [group(GOOD, rollout(2, "x" * 100_000, 0.0))])
    assert "characters left out" in of_stage(requests, "summarise")[0]


async def test_without_a_bound_every_rollout_is_summarised_as_it_is() -> None:
    long, failed = rollout(2, "x" * 100_000, 0.0), Rollout("t3", (), 0.0, error="timed out")
    _, requests = await critic(optimizer, [group(GOOD, long, failed)], reserve=None)
    summaries = of_stage(requests, "summarise")
    assert [one in said for one, said in zip((GOOD.answer, long.answer), summaries, strict=True)] == [True, True]


async def test_a_contrast_shows_task_library_and_rewards() -> None:
    _, requests = await critic(optimizer, [group(GOOD, BAD)])
    said = of_stage(requests, "contrast")[0]
    assert "<task>\n[system]\nBe brief.\n\n[user]\nHow far?\n</task>" in said
    assert "<library>\n[e1] Check units.\n</library>" in said
    assert '<rollout number="2" reward="0.25">\nAnswer: 7\n</rollout>' in said


async def test_a_contrast_shows_comments_and_the_reference() -> None:
    commented = rollout(2, "Answer: 7", 0.0, comments=("wrong unit",))
    _, requests = await critic(optimizer, [group(GOOD, commented, reference="5 km")])
    said = of_stage(requests, "contrast")[0]
    assert "<feedback>\nrollout 2: wrong unit\n</feedback>" in said
    assert "<reference>\n5 km\n</reference>" in said


async def test_without_comments_and_reference_there_are_no_such_sections() -> None:
    _, requests = await critic(optimizer, [group(GOOD, BAD)])
    said = of_stage(requests, "contrast")[0]
    assert [tag for tag in ("<feedback>", "<reference>") if tag in said] == []


async def test_a_proposal_carries_the_group_it_rests_on() -> None:
    critiques, _ = await critic(optimizer, [group(GOOD, BAD)])
    assert critiques[0].operations == (Operation("add", (), "Convert first.", "w", ("g1",)),)


async def test_a_proposal_is_made_from_lessons_library_and_what_was_rejected() -> None:
    _, requests = await critic(optimizer, [group(GOOD, BAD)])
    said = of_stage(requests, "propose")[0]
    assert "<lessons>\n- Convert first.\n</lessons>" in said
    assert "<rejected>\n- add: Old. (refused: too long)\n</rejected>" in said


async def test_a_group_without_a_lesson_proposes_nothing() -> None:
    critiques, requests = await critic(lambda _: '{"analysis": "chance", "lessons": []}', [group(GOOD, BAD)])
    assert (critiques[0].operations, len(requests)) == ((), 1)


async def test_critiques_come_in_the_order_of_their_groups() -> None:
    groups = [group(GOOD, BAD, key=f"g{number}") for number in range(20)]
    critiques, _ = await critic(optimizer, groups)
    assert [critique.group.key for critique in critiques] == [one.key for one in groups]


async def test_a_group_that_the_optimizer_refuses_is_a_fault_and_the_others_go_on() -> None:
    def reply(request: JSON) -> Reply:
        return refusal(400, "too long") if "pest" in sections(request) else optimizer(request)

    critiques, _ = await critic(reply, [group(GOOD, rollout(2, "pest", 0.0)), group(GOOD, BAD, key="g2")])
    assert [(len(one.operations), len(one.faults)) for one in critiques] == [(0, 1), (1, 0)]


def test_of_many_rollouts_the_best_and_the_worst_are_taken_in_order() -> None:
    many = [rollout(number, "x", number / 20) for number in range(20)]
    kept = [one.reward for one in chosen(group(*many)).rollouts]
    assert (len(kept), kept) == (MOST_ROLLOUTS, [n / 20 for n in (0, 1, 2, 3, 4, 15, 16, 17, 18, 19)])


def test_a_rollout_that_nothing_judged_is_left_out() -> None:
    assert chosen(group(GOOD, rollout(2, "x", None))).rollouts == (GOOD,)


def test_one_message_is_shown_without_its_role() -> None:
    assert transcript([Message("user", "How far?")]) == "How far?"


async def test_a_summary_is_shown_the_library_that_its_rollout_was_made_under() -> None:
    long = group(GOOD, rollout(2, "x" * (SHORT + 1), 0.0))
    under = {long.key: Library((Experience("e9", "On trial."),), 10)}
    async with serving(optimizer) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        await Critic(Optimizer(llm), {1: LIBRARY}, lambda _: None, under).summaries([long])
    assert "[e9] On trial." in sections(endpoint.requests[0])
