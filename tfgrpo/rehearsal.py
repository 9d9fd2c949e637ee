"""A stand-in for a model, to rehearse a run with: answers of an assumed length, at once and for nothing.

The run's own code asks it, so that calls and prompts are those of the real run as far as they do not depend on what a
model says. It knows the stages of the optimizer's protocol (DESIGN section 10); what else asks for a form
is a judge.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from tfgrpo.graders.judge import Judge
from tfgrpo.graders.verdict import Grade
from tfgrpo.types import Rollout, Task
from tfgrpo.usage import CHARACTERS_PER_TOKEN, estimated_tokens

JSON: TypeAlias = dict[str, Any]

PER_MESSAGE = 4
"""Tokens that a message takes beside its text, as chat templates go."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What a rehearsal takes for granted: tokens of answers, the share of groups that contrast, edits of a step, and
    the share of the words allowed that a lesson has.
    """

    rollout: int
    summary: int
    analysis: int
    contrasting: float
    edits: int
    words: float


LOW = Assumed(rollout=100, summary=100, analysis=50, contrasting=0.2, edits=1, words=0.5)
HIGH = Assumed(rollout=800, summary=500, analysis=400, contrasting=1.0, edits=10, words=1.0)


class Rehearsed:
    """An `Endpoint` that answers as `assumed` says, with lessons of at most `words` words."""

    def __init__(self, assumed: Assumed, *, words: int) -> None:
        self._assumed = assumed
        self._words = max(1, round(words * assumed.words))

    async def ask(self, request: JSON) -> JSON:
        """Return an answer of the assumed length, with the tokens that both take."""
        messages = request["messages"]
        text = self._answer(request, str(messages[-1]["content"]))
        prompt = sum(estimated_tokens(len(str(one["content"]))) + PER_MESSAGE for one in messages)
        return {
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": estimated_tokens(len(text))},
        }

    async def close(self) -> None:
        """Nothing is held here."""

    def _answer(self, request: JSON, user: str) -> str:
        match str(request["messages"][0]["content"]).partition("\n")[0]:
            case "Stage: summarise":
                return _filled(self._assumed.summary)
            case "Stage: contrast":
                return json.dumps({"analysis": _filled(self._assumed.analysis), "lessons": [self._lesson(user)]})
            case "Stage: propose":
                add = {"why": "", "operation": "add", "ids": [], "text": self._lesson(user)}
                return json.dumps({"operations": [add]})
            case "Stage: consolidate":
                proposed = [json.loads(line) for line in user.splitlines() if line.startswith("{")]
                return json.dumps({"operations": proposed[: self._assumed.edits]})
        if "response_format" in request:
            return json.dumps({"critique": _filled(self._assumed.analysis), "score": 1.0})
        # No two samples of a task say the same: where nothing is rewarded, answers are what is contrasted.
        return f"{request.get('seed')} {_filled(self._assumed.rollout)}"

    def _lesson(self, said: str) -> str:
        """Return a lesson that no other prompt gets."""
        digest = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
        return " ".join(digest[at % 56 : at % 56 + 6] for at in range(self._words))


@dataclass(frozen=True, slots=True)
class Contrasting:
    """A grader under which the assumed share of tasks contrasts, always the same ones.

    A `judge` is asked all the same, for what it takes; what it says does not count.
    """

    share: float
    judge: Judge | None = None
    name: str = "rehearsal"
    needs_reference: bool = False

    async def grade(self, task: Task, rollout: Rollout) -> Grade:
        """Return 1 for the first rollout of a task that contrasts, else 0."""
        if self.judge is not None:
            await self.judge.grade(task, rollout)
        luck = int.from_bytes(hashlib.sha256(task.key.encode()).digest()[:4]) / 2**32
        return Grade(float(luck < self.share and rollout.trajectory.endswith(".0")))

    async def close(self) -> None:
        """Nothing is held here."""


def _filled(tokens: int) -> str:
    return "abc " * (tokens * CHARACTERS_PER_TOKEN // 4)
