"""A whole loop by hand against the provider in process, in the frame of DESIGN.md section 10, for the tests here.

It is no trainer: it knows that the provider answers in JSON, sometimes broken, and asks once more when it does.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from tfgrpo import library as libraries
from tfgrpo.simulation.provider import OPTIMIZER, POLICY, Provider
from tfgrpo.simulation.tasks import grade
from tfgrpo.simulation.world import Row
from tfgrpo.types import Library, Operation

Rewarded = tuple[str, float]
"""An answer of the policy with its reward."""


def luck(seed: int) -> random.Random:
    """A fixed source of chance."""
    return random.Random(seed)  # noqa: S311 - a test needs to be repeated, not to keep a secret


def ask(provider: Provider, model: str, system: str, user: str, **members: Any) -> str:
    messages = [{"role": "user", "content": user}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return send(provider, model, messages, **members)


def send(provider: Provider, model: str, messages: Sequence[dict[str, str]], **members: Any) -> str:
    body = {"model": model, "messages": messages, **members}
    return provider.answer(json.dumps(body).encode()).texts[0]


def ask_json(provider: Provider, stage: str, user: str) -> dict[str, Any]:
    """The optimizer's JSON answer, repaired in the same conversation until it can be read."""
    messages = [{"role": "system", "content": f"Stage: {stage}\n\nDo it."}, {"role": "user", "content": user}]
    for _ in range(5):
        text = send(provider, OPTIMIZER, messages)
        try:
            value = json.loads(text)
        except ValueError:
            messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "JSON only, please."}]
        else:
            assert isinstance(value, dict)
            return value
    raise AssertionError("five broken answers in a row")


def rollout(provider: Provider, row: Row, system: str = "") -> Rewarded:
    text = ask(provider, POLICY, system, row["question"])
    return text, grade(text, row["answer"])


def success(provider: Provider, rows: Sequence[Row], system: str = "") -> float:
    return sum(rollout(provider, row, system)[1] for row in rows) / len(rows)


def contrast_prompt(rollouts: Sequence[Rewarded], library: Library | None = None) -> str:
    parts = ["<task>\nsome task\n</task>", f"<library>\n{libraries.lines(library or Library())}\n</library>"]
    parts += [
        f'<rollout number="{number}" reward="{reward}">\n{text}\n</rollout>'
        for number, (text, reward) in enumerate(rollouts, 1)
    ]
    return "\n\n".join(parts)


def learn(provider: Provider, groups: Sequence[Sequence[Rewarded]]) -> Library:
    """One pass: contrast and proposals for each group whose rewards differ, one consolidation."""
    empty = "<library>\n\n</library>"
    proposals: list[dict[str, Any]] = []
    for group in groups:
        if len({reward for _, reward in group}) < 2:
            continue
        lessons = ask_json(provider, "contrast", contrast_prompt(group))["lessons"]
        listed = "\n".join(f"- {text}" for text in lessons)
        asked = f"{empty}\n\n<lessons>\n{listed}\n</lessons>"
        proposals += ask_json(provider, "propose", asked)["operations"]
    lines = "\n".join(map(json.dumps, proposals))
    edit = ask_json(provider, "consolidate", f"{empty}\n\n<operations>\n{lines}\n</operations>")
    operations = [Operation(one["operation"], tuple(one["ids"]), one["text"], one["why"]) for one in edit["operations"]]
    return libraries.apply(Library(), operations).library


def shuffled(groups: Sequence[list[Rewarded]], rng: random.Random) -> list[list[Rewarded]]:
    """The groups with all their rewards dealt anew over all their rollouts."""
    dealt = [reward for group in groups for _, reward in group]
    rng.shuffle(dealt)
    left = iter(dealt)
    return [[(text, next(left)) for text, _ in group] for group in groups]
