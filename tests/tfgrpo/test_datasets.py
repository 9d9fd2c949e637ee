from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tfgrpo.datasets import ALSO_RIGHT, ANSWERS, QUESTIONS, Dataset, load, parse
from tfgrpo.errors import DatasetError
from tfgrpo.graders import by_name
from tfgrpo.types import Message, Rollout

JSON: TypeAlias = dict[str, Any]


def parsed(*lines: str, need_reference: bool = True) -> Dataset:
    return parse(lines, name="tasks.jsonl", need_reference=need_reference)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("answer", ANSWERS)
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


def test_one_question_with_two_answers_is_taken_once_and_said() -> None:
    data = parsed(*[json.dumps({"question": f"How  far{space}?", "answer": one}) for one, space in ("5 ", "6 ", "5 ")])
    assert (data.tasks[0].reference, len(data.tasks)) == ("5", 1)
    assert data.report() == (
        "2 rows repeat an earlier task and are left out; 1 of them with another answer (tasks.jsonl, line 2)"
    )


def test_without_repetitions_there_is_nothing_to_tell() -> None:
    assert parsed('{"question": "q", "answer": "a"}').report() is None


# Rows as the sets' publishers and the method's reference implementation write them.
ROWS: list[tuple[str, JSON, str, str]] = [
    ("GSM8K", {"question": "How many?", "answer": "16 - 3 = <<16-3=13>>13\nSo 13.\n#### 1,013"}, "How many?", "1,013"),
    ("AIME of the reference", {"problem": "Find $m+n$.", "groundtruth": "033"}, "Find $m+n$.", "033"),
    ("AIME", {"id": 60, "problem": "Find it.", "solution": "By ...", "answer": 33, "year": "2024"}, "Find it.", "33"),
    (
        "DAPO",
        {
            "data_source": "math_dapo",
            "prompt": [{"content": "Solve.", "role": "user"}],
            "reward_model": {"ground_truth": "34", "style": "rule-lighteval/MATH_v2"},
            "extra_info": {"index": "9a9b"},
        },
        "Solve.",
        "34",
    ),
    (
        "WebWalkerQA",
        {"question": "When?", "answer": "In May.", "root_url": "u", "info": {"difficulty_level": "easy"}},
        "When?",
        "In May.",
    ),
    (
        "web of the reference",
        {"id": 1, "problem": "When?", "groundtruth": "In May.", "level": 1, "root_url": "u", "info": "{}"},
        "When?",
        "In May.",
    ),
    (
        "upload of the reference",
        {"dataset": "Sums", "source": "training_free_grpo", "question": "2 + 2?", "answer": "4", "meta": None},
        "2 + 2?",
        "4",
    ),
    (
        "file of the reference's preparation",
        {"id": 3, "problem": "When?", "groundtruth": "In May.", "source_id": 71, "index": 3},
        "When?",
        "In May.",
    ),
    ("final answer", {"prompt": "How far?", "final_answer": 5}, "How far?", "5"),
    ("columns that a table left empty", {"question": None, "problem": "q", "answer": None, "reference": "5"}, "q", "5"),
    ("worked answer beside the right one", {"problem": "q", "answer": "Long.", "groundtruth": "5"}, "q", "5"),
    ("schema", {"question": "q", "reference": {"type": "null"}}, "q", '{"type": "null"}'),
]


@pytest.mark.parametrize(("row", "question", "reference"), [one[1:] for one in ROWS], ids=[one[0] for one in ROWS])
def test_public_rows_are_read_as_they_are(row: JSON, question: str, reference: str) -> None:
    (task,) = parsed(json.dumps(row)).tasks
    assert (task.question, task.reference) == (question, reference)


def test_the_way_to_the_result_is_kept_as_the_solution() -> None:
    (task,) = parsed(json.dumps({"question": "q", "answer": "By 9 x 2.\n#### 18"})).tasks
    assert task.metadata == {"solution": "By 9 x 2."}


async def test_graders_see_the_result_of_a_worked_answer() -> None:
    (task,) = parsed(json.dumps({"question": "q", "answer": "By 9 x 2, not 19.\n#### 18\n"})).tasks
    rollout = Rollout("t", (Message("assistant", "Answer: 18"),))
    assert [(await by_name(name).grade(task, rollout)).reward for name in ("exact", "number")] == [1.0, 1.0]


@pytest.mark.parametrize("answer", ["#### then more\ntext", "a #### b", "####"])
def test_a_mark_that_ends_nothing_is_text(answer: str) -> None:
    assert parsed(json.dumps({"question": "q", "answer": answer})).tasks[0].reference == answer


def test_a_file_may_be_one_json_list(tmp_path: Path) -> None:
    path = tmp_path / "DAPO.json"
    path.write_text(json.dumps([{"problem": "q", "groundtruth": "5"}, {"problem": "r", "groundtruth": "6"}], indent=2))
    assert [task.reference for task in load(path, need_reference=True).tasks] == ["5", "6"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"problem": "q"}]', "row 1: no groundtruth"),
        ("[", "neither JSONL nor"),
        ('[{"problem": "q", "answer": NaN}]', "NaN"),
    ],
)
def test_a_list_that_lacks_something_is_refused_with_its_row(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(DatasetError, match=said):
        load(tmp_path / "d.json", need_reference=True)


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
        '{"question": "q", "answer": NaN}',
        '{"question": "q", "answer": [["a"]]}',
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


def test_a_row_of_the_reference_may_have_no_answer() -> None:
    row = '{"dataset": "Sums", "source": "training_free_grpo", "question": "2 + 2?", "answer": null}'
    assert parsed(row, need_reference=False).tasks[0].reference is None
    with pytest.raises(DatasetError, match="line 1: no groundtruth"):
        parsed(row)


def test_a_file_without_a_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(DatasetError, match="no task"):
        load(tmp_path / "empty.jsonl", need_reference=True)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        load(tmp_path / "absent.jsonl", need_reference=True)


def test_a_list_holds_answers_that_are_all_right() -> None:
    (task,) = parsed('{"question": "q", "answer": ["New York", "NYC", 5]}').tasks
    assert (task.reference, task.metadata) == ("New York", {ALSO_RIGHT: ["NYC", "5"]})


@pytest.mark.parametrize("grader", ["exact", "math"])
async def test_each_of_several_right_answers_is_one(grader: str) -> None:
    (task,) = parsed('{"question": "q", "answer": ["1", "12"]}').tasks
    judge = by_name(grader)
    said = [Rollout("t", (Message("assistant", answer),)) for answer in ("Answer: 12", "Answer: 3")]
    assert [(await judge.grade(task, rollout)).reward for rollout in said] == [1.0, 0.0]
    await judge.close()


def test_an_empty_list_is_no_answer() -> None:
    with pytest.raises(DatasetError, match="the grader needs the right answer"):
        parsed('{"question": "q", "answer": []}')
