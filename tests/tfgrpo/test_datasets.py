from __future__ import annotations

from pathlib import Path

import pytest

from tfgrpo.datasets import Dataset, load, parse
from tfgrpo.errors import DatasetError
from tfgrpo.types import Message


def parsed(*lines: str, need_reference: bool = True) -> Dataset:
    return parse(lines, name="tasks.jsonl", need_reference=need_reference)


@pytest.mark.parametrize("question", ["question", "problem"])
@pytest.mark.parametrize("answer", ["answer", "groundtruth", "reference"])
def test_a_row_may_use_the_usual_names(question: str, answer: str) -> None:
    (task,) = parsed(f'{{"{question}": "How far?", "{answer}": "5"}}').tasks
    assert (task.question, task.reference) == ("How far?", "5")


def test_a_row_may_hold_messages() -> None:
    (task,) = parsed(
        '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], "answer": 5}'
    ).tasks
    assert task.messages == (Message("system", "s"), Message("user", "u"))


def test_a_number_is_an_answer() -> None:
    assert parsed('{"question": "q", "answer": 2.5}').tasks[0].reference == "2.5"


def test_what_else_a_row_holds_is_kept() -> None:
    assert parsed('{"question": "q", "answer": "a", "family": "f"}').tasks[0].metadata == {"family": "f"}


def test_a_task_that_stands_twice_is_taken_once_and_counted() -> None:
    data = parsed(*['{"question": "q", "answer": "a"}'] * 3, '{"question": "r", "answer": "a"}')
    assert (len(data.tasks), data.repeated) == (2, 2)


def test_blank_lines_are_passed_over() -> None:
    assert len(parsed("", '{"question": "q", "answer": "a"}', " ").tasks) == 1


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"question": "a\u2028b", "answer": "a"}\n', encoding="utf-8")
    assert load(path, need_reference=True).tasks[0].question == "a\u2028b"


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "{}",
        '{"question": 5, "answer": "a"}',
        '{"question": "q"}',
        '{"question": "q", "answer": ["a"]}',
        '{"messages": [], "answer": "a"}',
        '{"messages": [{"role": "user", "content": []}], "answer": "a"}',
        '{"messages": [{"role": "wizard", "content": "x"}], "answer": "a"}',
    ],
)
def test_a_row_that_lacks_something_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(DatasetError, match=r"tasks\.jsonl, line 2"):
        parsed('{"question": "q", "answer": "a"}', line)


def test_a_grader_that_needs_no_reference_takes_rows_without() -> None:
    assert parsed('{"question": "q"}', need_reference=False).tasks[0].reference is None


def test_a_file_without_a_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(DatasetError, match="no task"):
        load(tmp_path / "empty.jsonl", need_reference=True)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        load(tmp_path / "absent.jsonl", need_reference=True)
