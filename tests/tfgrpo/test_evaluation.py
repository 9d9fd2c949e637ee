from __future__ import annotations

from tests.tfgrpo.scripted import JSON, Reply, refusal, serving
from tfgrpo.evaluation import Evaluation, evaluate
from tfgrpo.graders import by_name
from tfgrpo.library import from_texts
from tfgrpo.llm import Llm
from tfgrpo.rollouts import ChatRunner, Prior, Sampling
from tfgrpo.types import Message, Task
from tfgrpo.usage import Ledger

TASKS = [Task(f"k{number}", (Message("user", f"task {number}"),), "yes") for number in range(10)]


LESSONS = Prior("s", 1, from_texts(["LESSONS"]))
NONE = Prior("s", 0, from_texts([]))


def helped(request: JSON) -> Reply:
    return "Answer: yes" if "LESSONS" in request["messages"][0]["content"] else "Answer: no"


async def compared(reply: object = helped, *, tested: Prior = LESSONS, against: Prior = NONE) -> Evaluation:
    assert callable(reply)
    async with serving(reply) as endpoint, Llm(endpoint.model(), ledger=Ledger()) as llm:
        runner = ChatRunner(llm, by_name("exact"), lambda _: None)
        return await evaluate(runner, TASKS, tested=tested, against=against, samples=3, sampling=Sampling(0.3))


async def test_a_library_that_turns_answers_right_helps() -> None:
    found = await compared()
    assert (found.comparison.verdict, found.comparison.difference, found.mean) == ("helps", 1.0, 1.0)


async def test_a_library_that_turns_answers_wrong_hurts() -> None:
    assert (await compared(tested=NONE, against=LESSONS)).comparison.verdict == "hurts"


async def test_a_library_against_itself_shows_no_effect() -> None:
    found = await compared(against=LESSONS)
    assert (found.comparison.verdict, found.comparison.difference) == ("no effect shown", 0.0)


async def test_rollouts_without_an_answer_are_counted() -> None:
    assert (await compared(lambda _: refusal(400, "no"))).failed == 60


async def test_the_json_says_verdict_difference_interval_and_size() -> None:
    shown = (await compared()).as_json()
    assert {"verdict", "difference", "interval", "smallest_detectable", "mean", "mean_against", "n"} <= shown.keys()
