"""How the optimizer model is asked: a stage's prompt, tolerant reading of its answer, one repair turn.

It knows what answers look like, not what they are for: `critique` and `consolidate` say what is asked and use what
comes back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from tfgrpo import parsing, prompts
from tfgrpo.llm import Completion, Llm
from tfgrpo.safety import redaction
from tfgrpo.types import Operation, OperationName

T = TypeVar("T")
JSON: TypeAlias = dict[str, Any]

UNREADABLE: Final = "the answer holds no JSON object of the form asked for"
CUT: Final = "the answer ends before its JSON does"

_PLACEHOLDER: Final = re.compile(r"[\s.…]*")
_ID: Final = re.compile(r"\[?\s*(?:id[:= ]*)?([^\s\[\]]+)\s*\]?")
_TEXT: Final[JSON] = {"type": "string"}
_TEXTS: Final[JSON] = {"type": "array", "items": _TEXT}
_NAMES: Final = ("add", "update", "merge", "delete", "keep")


@dataclass(frozen=True, slots=True)
class Lessons:
    """What a contrast found."""

    analysis: str = ""
    lessons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A JSON stage's answer as far as it could be read; `faults` say what could not, each in one sentence."""

    value: T
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Optimizer:
    """The optimizer model with everything that is the same for all its calls.

    `attempts` is how often a JSON stage whose answer stays unreadable is asked afresh, with another seed.
    """

    llm: Llm
    objective: str = ""
    temperature: float | None = None
    seed: int = 0
    max_words: int = 32
    attempts: int = 2
    most_lessons: int = field(default=1, kw_only=True)
    """Lessons that a contrast may give; of more the first are taken."""
    repair: bool = field(default=True, kw_only=True)
    """Whether an answer that cannot be used is sent back once, with what is wrong."""
    reserve: int | None = field(default=8_000, kw_only=True)
    """Tokens that one rollout may take in a prompt; a longer one is cut to its head and tail, and a short one is its
    own summary. None: every rollout is summarised, as it is."""
    ours: tuple[str, ...] = field(default=(), kw_only=True, repr=False)
    """Values of our own configuration that the model never sees, whatever a trajectory holds."""

    async def write(self, stage: prompts.Stage, sections: Sequence[str]) -> str:
        """Return the plain text that a stage answers with."""
        answer = await self._complete(stage, self._opening(stage, sections), schema=None, sample=0)
        return parsing.without_thoughts(answer.text).strip()

    async def lessons(self, sections: Sequence[str]) -> Answer[Lessons]:
        """Ask for a contrast."""
        answer = await self._read("contrast", sections, read=read_lessons, check=lambda _: ())
        found = answer.value
        return Answer(Lessons(found.analysis, found.lessons[: self.most_lessons]), answer.faults)

    async def operations(
        self,
        stage: prompts.Stage,
        sections: Sequence[str],
        *,
        check: Callable[[tuple[Operation, ...]], Sequence[str]] = lambda _: (),
    ) -> Answer[tuple[Operation, ...]]:
        """Ask for operations. `check` says what is wrong with those that can be read."""
        return await self._read(stage, sections, read=read_operations, check=check)

    async def _read(
        self,
        stage: prompts.Stage,
        sections: Sequence[str],
        *,
        read: Callable[[str], Answer[T] | None],
        check: Callable[[T], Sequence[str]],
    ) -> Answer[T]:
        """Ask, read, and where something is wrong say what, once; an unreadable answer is asked for afresh."""
        schema = _SCHEMAS[stage]
        best: Answer[T] | None = None
        asked: list[Completion] = []
        for sample in range(self.attempts):
            messages = self._opening(stage, sections)
            first = await self._complete(stage, messages, schema=schema, sample=sample)
            best = _checked(read(first.text), check)
            if best is not None and (not best.faults or not self.repair):
                return best
            asked.append(first)
            if not self.repair:
                continue
            faults = best.faults if best is not None else (UNREADABLE,)
            said = [self._redacted(prompts.escape(text)) for text in (first.text, *faults)]
            messages = [*messages, *_repair(said[0], said[1:])]
            second = await self._complete(stage, messages, schema=schema, sample=sample)
            repaired = _checked(read(second.text), check)
            asked.append(second)
            if repaired is not None and (best is None or len(repaired.faults) < len(best.faults)):
                best = repaired
            if best is not None:
                return best
        # Nothing could be made of these: to remember them would make each later run as useless as this one.
        await self.llm.forget(*asked)
        return Answer(_EMPTY[stage], (UNREADABLE,))

    def _opening(self, stage: prompts.Stage, sections: Sequence[str]) -> list[JSON]:
        objective = self.objective or "Answer tasks like these so that they earn a higher reward."
        user = prompts.message([prompts.section("objective", objective), *sections])
        return [
            {"role": "system", "content": prompts.system(stage, max_words=self.max_words, lessons=self.most_lessons)},
            {"role": "user", "content": self._redacted(user)},
        ]

    def _redacted(self, text: str) -> str:
        return redaction.redact(text, self.ours)

    async def _complete(
        self, stage: prompts.Stage, messages: list[JSON], *, schema: JSON | None, sample: int
    ) -> Completion:
        return await self.llm.complete(
            messages,
            stage=stage,
            temperature=self.temperature,
            seed=self.seed + sample,
            schema=schema,
            sample=sample,
        )


def read_lessons(text: str) -> Answer[Lessons] | None:
    """Return the last contrast that stands in `text`, None when there is none. Never raises."""
    found: Answer[Lessons] | None = None
    for one in parsing.find(text):
        value = parsing.holding(one.value, "lessons")
        if not isinstance(value, dict) or not isinstance(value.get("lessons"), list | str):
            continue
        raw = value["lessons"] if isinstance(value["lessons"], list) else [value["lessons"]]
        raw = [_said(item) for item in raw]
        texts = [item for item in raw if isinstance(item, str) and not _PLACEHOLDER.fullmatch(item)]
        if raw and not texts and found is not None:
            continue
        faults = [f"lesson {i + 1} is not a text" for i, item in enumerate(raw) if not isinstance(item, str)]
        analysis = value.get("analysis")
        clean = tuple(dict.fromkeys(" ".join(item.split()) for item in texts))
        lessons = Lessons(analysis if isinstance(analysis, str) else "", clean)
        found = Answer(lessons, (*faults, *([CUT] if one.cut else [])))
    return found


def _said(item: Any) -> Any:
    """Return the text of a lesson that was written as an object, anything else as it is."""
    if not isinstance(item, dict):
        return item
    texts = [value for value in item.values() if isinstance(value, str)]
    named = next((item[key] for key in ("lesson", "text", "content") if isinstance(item.get(key), str)), None)
    return named if named is not None else (texts[0] if len(texts) == 1 else item)


def read_operations(text: str) -> Answer[tuple[Operation, ...]] | None:
    """Return the last list of operations that stands in `text`, None when there is none. Never raises.

    Accepted: the object asked for, the bare list, and single operations one after the other.
    """
    rows: list[Any] | None = None
    single: list[Any] = []
    cut = False
    for one in parsing.find(text):
        value = parsing.holding(one.value, "operations")
        listed = value.get("operations") if isinstance(value, dict) else value
        if isinstance(value, dict) and isinstance(value.get("operation"), str):
            single.append(value)
            cut |= one.cut
        elif isinstance(listed, list) and (_is_answer(listed) or (rows is None and isinstance(value, dict))):
            rows, cut = listed, one.cut
    if rows is None and not single:
        return None
    answer = _operations([row for row in (single if rows is None else rows) if not _is_echo(row)])
    return Answer(answer.value, (*answer.faults, CUT)) if cut else answer


class _Row(BaseModel):
    """One operation as a model writes it."""

    model_config = ConfigDict(extra="ignore")

    operation: OperationName
    ids: tuple[str, ...] = ()
    text: str | None = None
    why: str = ""

    @field_validator("operation", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("ids", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        """Accept one id for a list of one, `[e3]` for `e3`, and 3 for `e3`."""
        if value is None:
            return ()
        if isinstance(value, str):
            value = [part for part in value.split(",") if part.strip()]
        items = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(item, str | int) for item in items):
            return value
        return tuple(dict.fromkeys(_id(item) for item in items))

    @field_validator("why", mode="before")
    @classmethod
    def _reason(cls, value: Any) -> Any:
        return value if isinstance(value, str) else ""


def _id(value: str | int) -> str:
    found = _ID.fullmatch(str(value).strip())
    name = found.group(1) if found else str(value).strip()
    return f"e{name}" if name.isdigit() else name


def _operations(rows: Sequence[Any]) -> Answer[tuple[Operation, ...]]:
    operations: dict[Operation, None] = {}
    faults: list[str] = []
    for number, row in enumerate(rows, 1):
        try:
            checked = _Row.model_validate(row if isinstance(row, dict) else {"operation": row})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            faults.append(f"operation {number}, {where}: {first['msg']}")
            continue
        operations[Operation(checked.operation, checked.ids, checked.text, checked.why)] = None
    return Answer(tuple(operations), tuple(faults))


def _is_answer(rows: list[Any]) -> bool:
    """Whether a list holds an operation that says something: not a form repeated, not any other list."""
    return any(isinstance(row, dict) and "operation" in row and not _is_echo(row) for row in rows)


def _is_echo(row: Any) -> bool:
    """Whether a row is the form of the prompt and no answer: its text is dots."""
    text = row.get("text") if isinstance(row, dict) else None
    return isinstance(text, str) and bool(text) and _PLACEHOLDER.fullmatch(text) is not None


def _checked(answer: Answer[T] | None, check: Callable[[T], Sequence[str]]) -> Answer[T] | None:
    if answer is None:
        return None
    return Answer(answer.value, (*answer.faults, *check(answer.value)))


def _repair(text: str, faults: Sequence[str]) -> list[JSON]:
    said = "\n".join(f"- {fault}" for fault in faults)
    return [
        {"role": "assistant", "content": text},
        {
            "role": "user",
            "content": f"That answer cannot be used as it is:\n{said}\n"
            "Send the whole answer again, corrected, as JSON only.",
        },
    ]


def _object(properties: JSON) -> JSON:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_OPERATIONS: Final[JSON] = {
    "name": "operations",
    "strict": True,
    "schema": _object(
        {
            "operations": {
                "type": "array",
                "items": _object(
                    {
                        "why": _TEXT,
                        "operation": {"type": "string", "enum": list(_NAMES)},
                        "ids": _TEXTS,
                        "text": {"type": ["string", "null"]},
                    }
                ),
            }
        }
    ),
}
_SCHEMAS: Final[dict[str, JSON]] = {
    "contrast": {
        "name": "contrast",
        "strict": True,
        "schema": _object({"analysis": _TEXT, "lessons": _TEXTS}),
    },
    "propose": _OPERATIONS,
    "consolidate": _OPERATIONS,
}
_EMPTY: Final[dict[str, Any]] = {"contrast": Lessons(), "propose": (), "consolidate": ()}
