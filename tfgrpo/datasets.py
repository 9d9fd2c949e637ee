"""Tasks from a JSONL file. It knows the names that public data sets use, and no grader.

A row holds `messages`, or `question` (also `problem`) with an optional `system`; the right answer as `answer`
(also `groundtruth`, `reference`). Everything else of a row is kept as the task's metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tfgrpo.errors import DatasetError
from tfgrpo.types import Message, Task

QUESTIONS: Final = ("question", "problem")
ANSWERS: Final = ("answer", "groundtruth", "reference")
ROLES: Final = ("system", "developer", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Dataset:
    """The tasks of a file, in order. A task that stands in it again is taken once and counted in `repeated`."""

    tasks: tuple[Task, ...]
    repeated: int = 0


def load(path: Path, *, need_reference: bool) -> Dataset:
    """Return the tasks of a JSONL file.

    Raises:
        DatasetError: the file cannot be read or holds no task, or a row lacks what is needed; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read: {error}", field="data") from error
    return parse(text.split("\n"), name=str(path), need_reference=need_reference)


def parse(lines: Iterable[str], *, name: str, need_reference: bool) -> Dataset:
    """Return the tasks of JSONL lines; see `load`. `name` stands in errors."""
    tasks: dict[str, Task] = {}
    rows = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            rows += 1
            task = _task(line, f"{name}, line {number}", need_reference=need_reference)
            tasks.setdefault(task.key, task)
    if not tasks:
        raise DatasetError(f"{name} holds no task; it must be JSONL, one object a line", field="data")
    return Dataset(tuple(tasks.values()), rows - len(tasks))


def _task(line: str, where: str, *, need_reference: bool) -> Task:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DatasetError(f"{where}: not JSON ({error})", field="data") from error
    if not isinstance(row, dict):
        raise DatasetError(f'{where}: a row must be an object such as {{"question": ...}}', field="data")
    messages = _messages(row, where)
    reference = _reference(row, where)
    if reference is None and need_reference:
        raise DatasetError(f"{where}: no {', '.join(ANSWERS)}; the grader needs the right answer", field="data")
    known = {*QUESTIONS, *ANSWERS, "messages", "system"}
    return Task(
        key=_key(messages, reference),
        messages=messages,
        reference=reference,
        metadata={name: value for name, value in row.items() if name not in known},
    )


def _messages(row: dict[str, Any], where: str) -> tuple[Message, ...]:
    given = row.get("messages")
    if given is not None:
        if not isinstance(given, list) or not given:
            raise DatasetError(f"{where}: messages must be a list that is not empty", field="data")
        return tuple(_message(item, f"{where}: messages[{number}]") for number, item in enumerate(given))
    question = next((row[name] for name in QUESTIONS if name in row), None)
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


def _reference(row: dict[str, Any], where: str) -> str | None:
    value = next((row[name] for name in ANSWERS if row.get(name) is not None), None)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return json.dumps(value)
    raise DatasetError(f"{where}: the right answer must be a text or a number", field="data")


def _key(messages: tuple[Message, ...], reference: str | None) -> str:
    parts = [[message.role, message.text] for message in messages]
    return hashlib.sha256(json.dumps([parts, reference]).encode()).hexdigest()[:32]
