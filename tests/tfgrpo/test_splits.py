from __future__ import annotations

import random
from collections.abc import Iterable

from tfgrpo.splits import THREE_FROM, split
from tfgrpo.types import Message, Task


def task(number: int, text: str = "Task {}.", reference: str = "a") -> Task:
    return Task(f"k{number}{reference}", (Message("user", text.format(number)),), reference)


def keys(tasks: Iterable[Task]) -> set[str]:
    return {one.key for one in tasks}


TASKS = [task(number) for number in range(400)]


def test_every_task_is_in_one_split_and_shares_are_about_as_asked() -> None:
    found = split(TASKS, held_out=0.3, validation=0.15)
    assert sorted(one.key for part in (found.train, found.validation, found.held_out) for one in part) == sorted(
        keys(TASKS)
    )
    assert (90 < len(found.held_out) < 150, 35 < len(found.validation) < 85) == (True, True)


def test_neither_order_nor_the_other_tasks_move_a_task() -> None:
    some = random.Random(1).sample(TASKS, 150)  # noqa: S311 - a test
    whole, part = (split(tasks, held_out=0.3, validation=0.15) for tasks in (TASKS, some))
    assert keys(part.held_out) == keys(whole.held_out) & keys(some)
    assert keys(part.validation) == keys(whole.validation) & keys(some)


def test_under_a_hundred_tasks_there_is_no_validation_and_what_is_held_out_stays() -> None:
    few = split(TASKS[: THREE_FROM - 1], held_out=0.3, validation=0.15)
    assert few.validation == ()
    whole = split(TASKS, held_out=0.3, validation=0.15)
    assert keys(few.held_out) == keys(whole.held_out) & keys(TASKS[: THREE_FROM - 1])


def test_white_space_case_and_the_answer_do_not_move_a_task() -> None:
    for number in range(50):
        same = [task(number), task(number, "  task\n{}. "), task(number, reference="b")]
        found = split(same, held_out=0.5, validation=0)
        assert len(found.train) in (0, 3)
