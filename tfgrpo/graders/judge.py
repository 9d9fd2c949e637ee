"""The grader `judge`: a model that scores an attempt by a rubric and says why.

Its calls are like any other of the run: remembered, paid from the run's budget and accounted under `judge`. What is
judged stands between fences whose mark is a hash of the material, so that no answer can close them; and a verdict that
stands word for word in the material, or is the form of the prompt, is a quotation and not the judge's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, TypeAlias

from tfgrpo import parsing, prompts
from tfgrpo.errors import GraderError, RequestRefused, UsageError
from tfgrpo.graders.verdict import Grade
from tfgrpo.llm import Completion, Llm
from tfgrpo.transcripts import transcript
from tfgrpo.types import Rollout, Task

JSON: TypeAlias = dict[str, Any]

STAGE: Final = "judge"
LONGEST: Final = 48_000
"""Characters of an attempt that the judge is shown; a longer one is cut, tool results first."""

_SCHEMA: Final[JSON] = {
    "name": "verdict",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {"critique": {"type": "string"}, "score": {"type": "number"}},
        "required": ["critique", "score"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks `llm`, which it is given when the run begins: naming a judge needs no model yet."""

    rubric: str
    llm: Llm | None = None
    temperature: float = 0.0
    name: str = STAGE
    needs_reference: bool = False

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Ask for a verdict, and where it cannot be read say why, once.

        Raises:
            GraderError: the second verdict cannot be read either, or the endpoint refuses the question.
        """
        material = _material(task, rollout)
        opening = [
            {"role": "system", "content": _instructions()},
            {"role": "user", "content": f"{_fenced({'rubric': self.rubric})}\n\n{_fenced(material)}"},
        ]
        quoted = [one.value for text in (_instructions(), *material.values()) for one in parsing.find(text)]
        first = await self._asked(opening)
        verdict = read(first.text, quoted)
        if isinstance(verdict, Grade):
            return verdict
        second = await self._asked([*opening, *_repair(first.text, verdict)])
        repaired = read(second.text, quoted)
        if isinstance(repaired, Grade):
            return repaired
        assert self.llm is not None
        await self.llm.forget(first, second)
        raise GraderError(f"its verdict cannot be used: {repaired}")

    async def close(self) -> None:
        """The model belongs to whoever gave it."""

    async def _asked(self, messages: Sequence[JSON]) -> Completion:
        if self.llm is None:
            raise UsageError("the judge has no model: open it with `judging`", field="grader")
        try:
            return await self.llm.complete(messages, stage=STAGE, temperature=self.temperature, schema=_SCHEMA)
        except RequestRefused as error:
            raise GraderError(f"its model refuses the question: {error}") from error


def read(text: str, quoted: Sequence[Any] = ()) -> Grade | str:
    """Return the last verdict in `text` that is not one of `quoted`, or what is wrong with it. Never raises."""
    found: Grade | str = "it holds no JSON object with a score"
    for one in parsing.find(text):
        value = parsing.holding(one.value, "score")
        if one.value not in quoted and isinstance(value, dict) and "score" in value:
            score = _number(value["score"])
            critique = value.get("critique")
            said = critique.strip() if isinstance(critique, str) else ""
            found = f"the score {value['score']!r} is no number from 0 to 1" if score is None else Grade(score, said)
    return found


def _number(value: Any) -> float | None:
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return score if 0 <= score <= 1 else None


def _instructions() -> str:
    return resources.files(prompts).joinpath("judge.md").read_text(encoding="utf-8").strip()


def _material(task: Task, rollout: Rollout) -> dict[str, str]:
    """Return what the judge is shown, by the name of each part."""
    reference = {} if task.reference is None else {"reference answer": task.reference}
    attempt = transcript(rollout.messages, LONGEST)
    return {"task": transcript(task.messages, LONGEST), **reference, "attempt": attempt}


def _fenced(parts: dict[str, str]) -> str:
    # No text can hold the hash of a whole that it is part of.
    mark = hashlib.blake2b("\0".join(parts.values()).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return "\n\n".join(
        f"----- {name} {mark} begins -----\n{text}\n----- {name} {mark} ends -----" for name, text in parts.items()
    )


def _repair(text: str, fault: str) -> list[JSON]:
    return [
        {"role": "assistant", "content": text},
        {
            "role": "user",
            "content": f"That verdict cannot be used: {fault}.\nSend it again, corrected, as JSON only.",
        },
    ]
