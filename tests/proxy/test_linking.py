from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from proxy.deployments import Deployments
from proxy.linking import Evidence, Linker, Placement
from proxy.recording import Recorder
from tests.proxy.examples import exchange, request, store
from tfgrpo import library
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Choice, Message, Outcome, Request, Response, ToolCall

DAY = 24 * 3600.0


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


class World:
    """One store with a worker's linker on it; further workers can be added."""

    def __init__(self, kept: Store, deployments: Deployments, recorder: Recorder) -> None:
        self.store = kept
        self.deployments = deployments
        self.recorder = recorder
        self.clock = Clock()
        self.linkers: list[Linker] = []
        self.linker = self.worker()
        self._count = 0

    def worker(self, *, peers: bool = False, patience: float = 5.0) -> Linker:
        linker = Linker(
            self.store,
            self.deployments,
            self.recorder,
            secret=b"s" * 32,
            peers=peers,
            patience=patience,
            clock=self.clock,
        )
        self.linkers.append(linker)
        return linker

    async def deploy(
        self, live: int | None, candidate: int | None = None, shares: dict[str, float] | None = None
    ) -> None:
        self.store.sets.deploy("math", live=live, candidate=candidate, shares=shares, reason="", actor="")
        await self.deployments.refresh()

    async def place(self, asked: Request | None, *, by: Linker | None = None, **more: object) -> tuple[str, Placement]:
        self._count += 1
        exchange_id = f"ex-{self._count}"
        evidence = structs.replace(Evidence("default", "math", asked), **more)
        return exchange_id, await (by or self.linker).place(evidence, exchange_id)

    async def exchange(
        self,
        asked: Request,
        *answers: str,
        by: Linker | None = None,
        response: Response | None = None,
        outcome: Outcome = "complete",
        **more: object,
    ) -> Placement:
        exchange_id, placement = await self.place(asked, by=by, **more)
        choices = tuple(Choice(number, Message("assistant", text)) for number, text in enumerate(answers))
        evidence = structs.replace(Evidence("default", "math", asked), **more)
        said = response or (Response(f"chatcmpl-{exchange_id}", choices) if answers else None)
        (by or self.linker).settle(placement, exchange_id, evidence, said, outcome)
        return placement

    async def written(self) -> None:
        """Wait until the recorder has nothing left to write."""
        async with asyncio.timeout(5):
            while self.recorder.stats.queued_bytes:  # noqa: ASYNC110 - the writer is a thread, it has no event
                await asyncio.sleep(0.002)


def briefed(text: str, asked: Request) -> Request:
    return structs.replace(asked, messages=(Message("system", text), *asked.messages))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = store(tmp_path)
    for text in ("Show each step.", "Check the units."):
        opened.sets.add_version("math", library.from_texts([text]), status="by hand")
    yield opened
    opened.close()


@pytest.fixture
async def world(kept: Store) -> AsyncIterator[World]:
    deployments = Deployments(kept, interval=3600)
    await deployments.start()
    recorder = Recorder(kept)
    recorder.start()
    made = World(kept, deployments, recorder)
    yield made
    for linker in made.linkers:
        linker.close()
    await deployments.stop()
    recorder.stop()


async def test_a_turn_that_repeats_the_answer_belongs_to_the_same_trajectory(world: World) -> None:
    first = await world.exchange(request("1+1?"), "2")
    second = await world.exchange(request("1+1?", "2", "and 2+2?"), "4")
    third = await world.exchange(request("1+1?", "2", "and 2+2?", "4", "thanks"), "welcome")
    assert {first.assignment.trajectory} == {second.assignment.trajectory, third.assignment.trajectory}
    assert (first.parent, second.parent, third.parent) == (None, "ex-1", "ex-2")


async def test_the_same_question_again_is_another_rollout_of_its_group(world: World) -> None:
    first = await world.exchange(request("1+1?"), "2")
    again = await world.exchange(request("1+1?"), "2")
    assert first.assignment.trajectory != again.assignment.trajectory
    assert first.assignment.group == again.assignment.group


async def test_twins_are_continued_one_each(world: World) -> None:
    twins = [await world.exchange(request("1+1?"), "2") for _ in range(3)]
    turns = [await world.exchange(request("1+1?", "2", "sure?"), "yes") for _ in range(3)]
    assert [t.assignment.trajectory for t in turns] == [t.assignment.trajectory for t in twins]


async def test_of_twins_the_one_with_the_same_system_text_is_continued_by_whichever_worker(world: World) -> None:
    twins = {text: await world.exchange(briefed(text, request("1+1?")), "2") for text in ("a", "b")}
    await world.written()
    for text, by in (("b", world.linker), ("a", world.worker())):
        turn = await world.exchange(briefed(text, request("1+1?", "2", "sure?")), "yes", by=by)
        assert turn.assignment.trajectory == twins[text].assignment.trajectory


async def test_a_turn_whose_system_text_changed_is_still_one(world: World) -> None:
    first = await world.exchange(briefed("It is early.", request("1+1?")), "2")
    second = await world.exchange(briefed("It is late.", request("1+1?", "2", "sure?")), "yes")
    assert second.assignment == first.assignment


async def test_a_tool_result_belongs_to_the_call_it_answers(world: World) -> None:
    call = Message("assistant", "", (ToolCall("call-1", "add", "{}"),))
    first = await world.exchange(request("1+1?"), response=Response("c", (Choice(0, call),)))
    edited = Request("m", (Message("user", "shortened"), call, Message("tool", "2", tool_call_id="call-1")))
    assert (await world.exchange(edited, "2")).assignment == first.assignment


async def test_any_of_several_choices_can_be_continued(world: World) -> None:
    first = await world.exchange(request("1+1?", n=2), "2", "two")
    second = await world.exchange(request("1+1?", "two", "sure?"), "yes")
    assert second.assignment == first.assignment


async def test_chains_stay_within_their_app_and_set(world: World) -> None:
    first = await world.exchange(request("1+1?"), "2")
    other_app = await world.exchange(request("1+1?", "2", "?"), "!", app="shop")
    other_set = await world.exchange(request("1+1?", "2", "?"), "!", set_name="law")
    assert first.assignment.trajectory not in (other_app.assignment.trajectory, other_set.assignment.trajectory)


async def test_an_explicit_trajectory_is_never_split(world: World) -> None:
    first = await world.exchange(request("1+1?"), "2", trajectory="run-7")
    second = await world.exchange(request("something else"), "x", trajectory="run-7")
    assert first.assignment.trajectory == second.assignment.trajectory == "run-7"
    assert second.assignment == first.assignment


async def test_each_new_first_request_of_a_session_is_a_task_of_its_own(world: World) -> None:
    tasks = [await world.exchange(request(f"question {n}"), "answer", session="S") for n in range(3)]
    assert [task.assignment.trajectory for task in tasks] == ["S", "S/2", "S/3"]


async def test_a_session_continues_the_task_whose_answer_it_repeats(world: World) -> None:
    await world.exchange(request("one"), "1", session="S")
    await world.exchange(request("two"), "2", session="S")
    turn = await world.exchange(request("one", "1", "more"), "x", session="S")
    assert turn.assignment.trajectory == "S"


async def test_a_session_turn_that_links_to_nothing_belongs_to_its_newest_task(world: World) -> None:
    await world.exchange(request("one"), "1", session="S")
    await world.exchange(request("two"), "2", session="S")
    turn = await world.exchange(request("two, shortened", "2!", "more"), "x", session="S")
    assert turn.assignment.trajectory == "S/2"


async def test_a_session_does_not_take_the_trajectory_of_another(world: World) -> None:
    await world.exchange(request("one"), "1", session="A")
    turn = await world.exchange(request("one", "1", "more"), "x", session="B")
    assert turn.assignment.trajectory == "B"


async def test_requests_that_arrive_together_start_tasks_of_their_own(world: World) -> None:
    placed = await asyncio.gather(*(world.place(request(f"q{n}"), session="S") for n in range(4)))
    assert {p.assignment.trajectory for _, p in placed} == {"S", "S/2", "S/3", "S/4"}


async def test_the_session_may_stand_in_the_metadata(world: World) -> None:
    asked = structs.replace(request("1+1?"), session_id="meta-1")
    assert (await world.exchange(asked, "2")).assignment.trajectory == "meta-1"


async def test_a_session_that_does_not_fit_the_grammar_is_ignored(world: World) -> None:
    asked = structs.replace(request("1+1?"), session_id="with space")
    assert (await world.exchange(asked, "2")).assignment.trajectory.startswith("t-")


async def test_a_retry_of_a_failed_request_is_no_new_rollout(world: World) -> None:
    body = b'{"q": 1}'
    failed = await world.exchange(request("1+1?"), body=body, outcome="failed")
    again = await world.exchange(request("1+1?"), "2", body=body, retry=True)
    assert again.assignment == failed.assignment
    assert again.retry


async def test_a_retry_of_nothing_that_failed_is_a_rollout_like_any_other(world: World) -> None:
    first = await world.exchange(request("1+1?"), "2", body=b"1")
    again = await world.exchange(request("1+1?"), "2", body=b"1", retry=True)
    assert again.assignment.trajectory != first.assignment.trajectory
    assert not again.retry


async def test_a_retry_in_a_session_starts_no_task(world: World) -> None:
    await world.exchange(request("1+1?"), body=b"1", outcome="failed", session="S")
    again = await world.exchange(request("1+1?"), "2", body=b"1", retry=True, session="S")
    assert again.assignment.trajectory == "S"


async def test_a_turn_whose_parent_is_not_found_is_unknown_and_gets_the_live_library(world: World) -> None:
    await world.deploy(1, shares={"control": 1.0})
    _, placement = await world.place(request("1+1?", "2", "more"))
    assert (placement.arm, placement.version) == ("unknown", 1)


async def test_example_answers_in_front_of_questions_are_known_when_they_come_again(world: World) -> None:
    await world.deploy(1, shares={"control": 1.0})
    arms = [(await world.place(request("2+2?", "4", f"{n}+{n}?")))[1].arm for n in range(4)]
    assert arms == ["unknown", "unknown", "control", "control"]


async def test_questions_behind_the_same_examples_are_tasks_of_their_own(world: World) -> None:
    _, one = await world.place(request("2+2?", "4", "3+3?"))
    _, two = await world.place(request("2+2?", "4", "5+5?"))
    assert one.assignment.group != two.assignment.group


async def test_a_new_worker_finds_the_parent_in_the_store(world: World) -> None:
    first = await world.exchange(request("1+1?"), "2")
    await world.written()
    second = await world.exchange(request("1+1?", "2", "more"), "x", by=world.worker())
    assert second.assignment == first.assignment
    assert second.parent == "ex-1"


async def test_a_peer_finds_a_parent_whose_link_is_still_being_written(world: World) -> None:
    first = await world.exchange(request("1+1?"), "2")
    second = await world.exchange(request("1+1?", "2", "more"), "x", by=world.worker(peers=True))
    assert second.assignment == first.assignment


async def test_a_peer_counts_the_tasks_that_another_worker_began(world: World) -> None:
    peer = world.worker(peers=True)
    await world.exchange(request("one"), "1", session="S", by=peer)
    await world.written()
    await world.exchange(request("two"), "2", session="S", by=world.linker)
    await world.written()
    third = await world.exchange(request("three"), "3", session="S", by=peer)
    assert third.assignment.trajectory == "S/3"


async def test_a_new_worker_keeps_an_explicit_trajectory_in_its_arm(world: World) -> None:
    await world.deploy(1, shares={"control": 0.5})
    first = [await world.exchange(request("q"), "a", trajectory=f"run-{n}") for n in range(8)]
    await world.written()
    await world.deploy(2)
    fresh = world.worker()
    second = [await world.exchange(request("q"), "a", trajectory=f"run-{n}", by=fresh) for n in range(8)]
    assert [(p.arm, p.version) for p in second] == [(p.arm, p.version) for p in first]


async def test_a_turn_waits_for_an_answer_that_is_still_being_read(world: World) -> None:
    evidence = Evidence("default", "math", request("1+1?"))
    first = await world.linker.place(evidence, "ex-a")
    with world.linker.reading(evidence):
        turn = asyncio.create_task(world.place(request("1+1?", "2", "more")))
        await asyncio.sleep(0)
        answer = Response("c", (Choice(0, Message("assistant", "2")),))
        world.linker.settle(first, "ex-a", evidence, answer, "complete")
    assert (await turn)[1].assignment == first.assignment


async def test_a_turn_does_not_wait_for_an_answer_longer_than_its_patience(world: World) -> None:
    hasty = world.worker(patience=0.05)
    with hasty.reading(Evidence("default", "math", request("1+1?"))):
        async with asyncio.timeout(2):
            _, placement = await world.place(request("1+1?", "2", "more"), by=hasty)
    assert placement.parent is None


async def test_a_store_that_does_not_answer_makes_a_turn_unknown(world: World, tmp_path: Path) -> None:
    await world.deploy(1)
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("ALTER TABLE links RENAME TO elsewhere")
        _, placement = await world.place(request("1+1?", "2", "more"))
        other.execute("ALTER TABLE elsewhere RENAME TO links")
    assert placement.arm == "unknown"
    assert world.linker.stats.unanswered == 1


async def test_a_swap_reaches_new_trajectories_and_leaves_running_ones(world: World) -> None:
    await world.deploy(1)
    first = await world.exchange(request("1+1?"), "2")
    await world.deploy(2)
    turn = await world.exchange(request("1+1?", "2", "more"), "x")
    fresh = await world.exchange(request("1+1?"), "2")
    assert (first.version, turn.version, fresh.version) == (1, 1, 2)


async def test_a_rollback_reaches_the_next_request_of_every_trajectory(world: World) -> None:
    await world.deploy(1)
    await world.deploy(2)
    first = await world.exchange(request("1+1?"), "2")
    world.store.sets.rollback("math", reason="", actor="")
    await world.deployments.refresh()
    turn = await world.exchange(request("1+1?", "2", "more"), "x")
    assert (first.version, turn.version, turn.arm) == (2, 1, "live")


async def test_after_a_day_of_silence_a_trajectory_gets_what_is_live(world: World) -> None:
    await world.deploy(1)
    await world.exchange(request("1+1?"), "2")
    await world.deploy(2)
    world.clock.now += DAY + 1
    assert (await world.exchange(request("1+1?", "2", "more"), "x")).version == 2


async def test_a_version_asked_for_by_header_is_given_whatever_the_trajectory_had(world: World) -> None:
    await world.deploy(1)
    await world.exchange(request("1+1?"), "2")
    turn = await world.exchange(request("1+1?", "2", "more"), "x", pin=2)
    assert (turn.arm, turn.version, turn.assignment.arm) == ("pinned", 2, "live")


async def test_none_by_header_is_outside_every_experiment(world: World) -> None:
    await world.deploy(1)
    placement = await world.exchange(request("1+1?"), "2", pin="none")
    assert (placement.arm, placement.version, placement.assignment.probability) == ("none", 0, None)


async def test_the_arm_and_its_probability_reach_the_store(world: World) -> None:
    await world.deploy(1, 2, {"candidate": 1.0})
    placement = await world.exchange(request("1+1?"), "2")
    await world.written()
    found = world.store.traffic.assignment("default", placement.assignment.trajectory)
    assert found == placement.assignment
    assert (placement.arm, placement.version, placement.assignment.probability) == ("candidate", 2, 1.0)


async def test_a_body_that_cannot_be_read_gets_a_trajectory_without_an_arm(world: World) -> None:
    await world.deploy(1)
    _, placement = await world.place(None, body=b"{", injectable=False)
    assert (placement.arm, placement.version) == ("none", 0)


async def test_a_trajectory_named_again_in_another_set_does_not_get_the_first_sets_version(world: World) -> None:
    await world.deploy(2)
    await world.exchange(request("1+1?"), "2", trajectory="run-7")
    other = await world.exchange(request("1+1?"), "2", trajectory="run-7", set_name="law")
    assert (other.assignment.trajectory, other.assignment.set, other.version) == ("run-7", "law", 0)


async def test_a_named_trajectory_that_was_heard_of_today_is_not_idle_for_a_new_worker(world: World) -> None:
    await world.deploy(1)
    await world.exchange(request("q"), "a", trajectory="run-7")
    await world.deploy(2)
    await world.written()
    world.clock.now += DAY + 1
    today = structs.replace(exchange("ex-today", trajectory="run-7"), ended_at=world.clock.now - 60)
    world.store.traffic.add(Batch(exchanges=((today, Bodies()),)))
    placement = await world.exchange(request("q"), "a", trajectory="run-7", by=world.worker())
    assert placement.version == 1
