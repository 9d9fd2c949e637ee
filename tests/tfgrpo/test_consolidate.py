from __future__ import annotations

import json
from typing import Any

from tests.tfgrpo.scripted import JSON, Reply, sections, serving
from tfgrpo.consolidate import Consolidation, applied, consolidate, trace
from tfgrpo.library import Limits
from tfgrpo.llm import Llm
from tfgrpo.optimizer import Optimizer
from tfgrpo.types import Experience, Library, Operation, Refusal
from tfgrpo.usage import Ledger

LIBRARY = Library((Experience("e1", "Check units."), Experience("e2", "Guess early.")), 3)
PROPOSALS = (
    Operation("add", (), "Convert lengths to metres first.", "w", ("g1",)),
    Operation("add", (), "First convert lengths to metres.", "w", ("g2",)),
    Operation("delete", ("e2",), None, "w", ("g3",)),
)


def answer(*rows: dict[str, Any]) -> str:
    return json.dumps({"operations": [{"why": "w", "ids": [], "text": None, **row} for row in rows]})


async def consolidated(
    *replies: Reply, proposals: tuple[Operation, ...] = PROPOSALS, contested: frozenset[str] = frozenset()
) -> tuple[Consolidation, list[JSON]]:
    left = list(replies)
    async with serving(lambda _: left.pop(0)) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        result = await consolidate(Optimizer(llm), LIBRARY, proposals, Limits(words=6), contested=contested)
    return result, endpoint.requests


async def test_no_proposal_is_no_call() -> None:
    result, requests = await consolidated(proposals=())
    assert (result.edit.library, requests) == (LIBRARY, [])


async def test_one_call_sees_every_proposal_as_json_lines() -> None:
    _, (request,) = await consolidated(answer())
    said = sections(request).partition("<operations>\n")[2].partition("\n</operations>")[0]
    assert [json.loads(line)["operation"] for line in said.splitlines()] == ["add", "add", "delete"]


async def test_the_answer_is_applied_to_the_library() -> None:
    result, _ = await consolidated(answer({"operation": "add", "text": "Convert first."}))
    assert result.edit.library.experiences[-1].text == "Convert first."


async def test_an_entry_that_rewards_alone_decide_on_is_not_deleted_and_the_rest_is_applied() -> None:
    said = answer({"operation": "delete", "ids": ["e2"]}, {"operation": "add", "text": "Convert first."})
    result, _ = await consolidated(said, contested=frozenset({"e2"}))
    assert [one.id for one in result.edit.library.experiences] == ["e1", "e2", "e3"]
    assert [one.operation.operation for one in result.edit.refused] == ["delete"]


async def test_an_experience_remembers_the_groups_of_the_proposals_that_say_it() -> None:
    result, _ = await consolidated(answer({"operation": "add", "text": "Convert lengths to metres first."}))
    assert result.edit.library.experiences[-1].sources == ("g1", "g2")


def test_an_operation_on_an_entry_rests_on_the_proposals_that_name_it() -> None:
    assert trace(Operation("delete", ("e2",)), PROPOSALS).sources == ("g3",)


def test_an_operation_that_no_proposal_resembles_rests_on_all_groups() -> None:
    assert trace(Operation("add", (), "Something else."), PROPOSALS).sources == ("g1", "g2", "g3")


async def test_what_cannot_be_applied_is_shown_and_repaired() -> None:
    long = answer({"operation": "add", "text": "one two three four five six seven"})
    result, requests = await consolidated(long, answer({"operation": "add", "text": "Convert first."}))
    assert "7 words, 6 are allowed" in requests[1]["messages"][3]["content"]
    assert len(result.edit.applied) == 1


async def test_what_still_cannot_be_applied_is_refused_with_its_reason() -> None:
    wrong = answer({"operation": "update", "ids": ["e7"], "text": "x"}, {"operation": "delete", "ids": ["e2"]})
    result, _ = await consolidated(wrong, wrong)
    assert [one.reason for one in result.edit.refused] == ["no entry has the id e7"]
    assert [one.operation for one in result.edit.applied] == ["delete"]
    assert result.faults == ()


async def test_an_answer_that_stays_unreadable_changes_nothing_and_is_told() -> None:
    result, _ = await consolidated("?", "?", "?", "?")
    assert (result.edit.library, len(result.faults)) == (LIBRARY, 1)


def test_a_proposal_that_says_the_opposite_is_no_witness() -> None:
    proposals = (
        Operation("add", (), "Always convert the lengths before answering.", "w", ("g1",)),
        Operation("add", (), "Never convert the lengths before answering.", "w", ("g2",)),
    )
    assert trace(Operation("add", (), "Convert the lengths before answering."), proposals).sources == ("g1",)


def test_of_too_many_edits_the_best_supported_are_made_in_their_order() -> None:
    operations = [Operation("add", (), f"Number {n}.", "", tuple("abcd"[:n])) for n in (1, 3, 2)]
    edit = applied(LIBRARY, operations, Limits(edits=2))
    assert [one.text for one in edit.applied] == ["Number 3.", "Number 2."]
    assert "only 2 edits" in edit.refused[0].reason


def test_a_text_that_did_harm_is_not_taken_again() -> None:
    rejected = [Refusal(Operation("add", (), "Guess  Early again."), "tasks earned less")]
    edit = applied(LIBRARY, [Operation("update", ("e2",), "guess early again.")], Limits(), rejected)
    assert (edit.applied, edit.refused[0].reason) == ((), "refused before: tasks earned less")


async def test_a_library_over_its_limit_is_made_smaller_even_without_proposals() -> None:
    replies = [answer({"operation": "merge", "ids": ["e1", "e2"], "text": "Check units, guess late."})]
    async with serving(lambda _: replies.pop(0)) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        result = await consolidate(Optimizer(llm), LIBRARY, (), Limits(entries=1))
    assert [one.text for one in result.edit.library.experiences] == ["Check units, guess late."]
    assert "at most 1 entries (it has 2)" in sections(endpoint.requests[0])


async def test_where_the_optimizer_makes_no_room_the_least_supported_entry_goes_and_it_is_told() -> None:
    async with serving(lambda _: answer()) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        result = await consolidate(Optimizer(llm), LIBRARY, (), Limits(entries=1))
    assert ([one.id for one in result.edit.library.experiences], result.edit.applied[0].ids) == (["e1"], ("e2",))
