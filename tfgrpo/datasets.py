"""Tasks from a file of rows. It knows the names and forms that public data sets use, and no grader.

A row holds `messages` (also `prompt`), or `question` (also `problem`, `prompt`) with an optional `system`; the right
answer, or a list of those that are right, under one of `ANSWERS`, or in `reward_model` as DAPO has it. Of an answer
that ends in GSM8K's `#### 18` what stands behind the mark is the reference, and the rest is kept as `solution`.
Everything else of a row is the task's metadata. A file is JSONL, or one JSON list.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tfgrpo.errors import DatasetError
from tfgrpo.types import Message, Task

QUESTIONS: Final = ("question", "problem", "prompt")
ANSWERS: Final = ("groundtruth", "ground_truth", "golden_answer", "answer", "final_answer", "reference")
"""The first that a row has counts: where there are two, `answer` is the longer one."""
ALSO_RIGHT: Final = "also_right"
"""The key of a task's metadata that holds the right answers beside its reference, where a row has a list of them."""
ROLES: Final = ("system", "developer", "user", "assistant")

_GSM8K: Final = re.compile(r"(?P<solution>.*?)^[ \t]*####[ \t]*(?P<result>\S[^\n]*?)\s*", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The tasks of a file, in order. A task that is asked again is taken once and counted in `repeated`.

    `differing` names the rows among those whose answer is another than the one taken.
    """

    tasks: tuple[Task, ...]
    repeated: int = 0
    differing: tuple[str, ...] = ()
    remark: str | None = None
    """What else to tell about it."""

    def report(self) -> str | None:
        """Return what to tell about rows that were left out."""
        others = f"; {len(self.differing)} of them with another answer ({', '.join(self.differing[:3])})"
        repeated = f"{self.repeated} rows repeat an earlier task and are left out{others if self.differing else ''}"
        return "; ".join([*([repeated] if self.repeated else []), *([self.remark] if self.remark else [])]) or None


def load(path: Path, *, need_reference: bool) -> Dataset:
    """Return the tasks of a file.

    Raises:
        DatasetError: the file cannot be read or holds no task, or a row lacks what is needed; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read: {error}", field="data") from error
    if text.lstrip().startswith("["):
        return of_rows(_listed(text, path), name=str(path), need_reference=need_reference)
    return parse(text.split("\n"), name=str(path), need_reference=need_reference)


def parse(lines: Iterable[str], *, name: str, need_reference: bool) -> Dataset:
    """Return the tasks of JSONL lines; see `load`. `name` stands in errors."""
    rows = ((f"{name}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip())
    return of_rows(((where, _read(line, where)) for where, line in rows), name=name, need_reference=need_reference)


def of_rows(rows: Iterable[tuple[str, Any]], *, name: str, need_reference: bool) -> Dataset:
    """Return the tasks of rows, each with the place that errors name."""
    found = distinct((where, _task(row, where, need_reference=need_reference)) for where, row in rows)
    if not found.tasks:
        raise DatasetError(f"{name} holds no task; it must be JSONL, one object a line", field="data")
    return found


def distinct(found: Iterable[tuple[str, Task]]) -> Dataset:
    """Return tasks, each with its place, as a data set in which none is asked twice."""
    tasks: dict[tuple[tuple[str, str], ...], Task] = {}
    repeated = 0
    differing = []
    for where, task in found:
        asked = tuple((message.role, " ".join(message.text.split())) for message in task.messages)
        taken = tasks.setdefault(asked, task)
        if taken is not task:
            repeated += 1
            differing += [where] if task.reference != taken.reference else []
    return Dataset(tuple(tasks.values()), repeated, tuple(differing))


def _listed(text: str, path: Path) -> list[tuple[str, Any]]:
    try:
        rows = json.loads(text, parse_constant=_no_json)
    except ValueError as error:
        raise DatasetError(f"{path} is neither JSONL nor one JSON list ({error})", field="data") from error
    return [(f"{path}, row {number}", row) for number, row in enumerate(rows, 1)]


def _read(line: str, where: str) -> Any:
    try:
        return json.loads(line, parse_constant=_no_json)
    except ValueError as error:
        raise DatasetError(f"{where}: not JSON ({error})", field="data") from error


def _no_json(name: str) -> Any:
    """NaN and the infinities, which Python writes for what a table left empty, are no right answers."""
    raise ValueError(f"{name} is no value of JSON; leave the field out, or write null")


def _task(row: Any, where: str, *, need_reference: bool) -> Task:
    if not isinstance(row, dict):
        raise DatasetError(f'{where}: a row must be an object such as {{"question": ...}}', field="data")
    messages = _messages(row, where)
    answers = _references(row, where)
    reference, solution = _split(answers[0] if answers else None)
    if reference is None and need_reference:
        raise DatasetError(f"{where}: no {', '.join(ANSWERS)}; the grader needs the right answer", field="data")
    known = {*QUESTIONS, *ANSWERS, "messages", "system", "reward_model"}
    kept = {name: value for name, value in row.items() if name not in known}
    return Task(
        key=key_of(messages, reference),
        messages=messages,
        reference=reference,
        metadata={
            **({} if solution is None else {"solution": solution}),
            **({ALSO_RIGHT: answers[1:]} if answers[1:] else {}),
            **kept,
        },
    )


def _messages(row: dict[str, Any], where: str) -> tuple[Message, ...]:
    name = next((name for name in ("messages", "prompt") if isinstance(row.get(name), list)), "messages")
    given = row.get(name)
    if given is not None:
        if not isinstance(given, list) or not given:
            raise DatasetError(f"{where}: {name} must be a list that is not empty", field="data")
        return tuple(_message(item, f"{where}: {name}[{number}]") for number, item in enumerate(given))
    question = next((row[name] for name in QUESTIONS if row.get(name) is not None), None)
    if not isinstance(question, str) or not question.strip():
        raise DatasetError(f"{where}: needs messages, or a text as {' or '.join(QUESTIONS)}", field="data")
    system = row.get("system")
    if system is not None and not isinstance(system, str):
        raise DatasetError(f"{where}: system must be a text", field="data")
    return (*((Message("system", system),) if system else ()), Message("user", question))


def _message(item: Any, where: str) -> Message:
    role = item.get("role") if isinstance(item, dict) else None
    if role not in ROLES:
        raise DatasetError(f"{where}.role must be one of {', '.join(ROLES)}", field="data")
    content = item.get("content")
    if not isinstance(content, str):
        raise DatasetError(f"{where}.content must be a text", field="data")
    return Message(role, content)


def _references(row: dict[str, Any], where: str) -> list[str]:
    """Return the right answers of a row, of which a list holds several."""
    value = next((row[name] for name in ANSWERS if row.get(name) is not None), None)
    nested = row.get("reward_model")
    if value is None and isinstance(nested, dict):
        value = nested.get("ground_truth")
    several = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, str | int | float | dict) for one in several):
        raise DatasetError(f"{where}: a right answer must be a text, a number or an object", field="data")
    return [one if isinstance(one, str) else json.dumps(one) for one in several]


def _split(answer: str | None) -> tuple[str | None, str | None]:
    """Return the reference, and the worked solution where the answer is one that ends in its result."""
    found = _GSM8K.fullmatch(answer or "")
    return (answer, None) if found is None else (found["result"], found["solution"].strip() or None)


def key_of(messages: tuple[Message, ...], reference: str | None) -> str:
    """Return the key of a task."""
    parts = [[message.role, message.text] for message in messages]
    return hashlib.sha256(json.dumps([parts, reference]).encode()).hexdigest()[:32]
