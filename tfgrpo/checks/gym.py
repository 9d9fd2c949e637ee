"""The process of a reasoning-gym family: it makes the family's tasks, and judges answers to them by its own checker.

A process of its own, because some families search for minutes and some checkers evaluate what they are given. A task
is named by its number and made anew where it is judged: a family's checker needs more than JSON can carry. Some
families walk through sets, so that only a fixed order of these, which `processes` sees to, makes them repeatable.
"""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from reasoning_gym.factory import DATASETS, create_dataset

from tfgrpo.checks import text
from tfgrpo.checks.serving import JSON, Judgement, serve

REMEMBERED: Final = 4096
"""Tasks that are not made again for the next answer to them."""

_TAGGED: Final = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


def prepare(arguments: JSON) -> Judgement:
    """Return what makes the tasks of `family`, or judges answers to them where `arguments` say so."""
    family = _made(arguments["family"], arguments["n"], arguments["seed"])

    @lru_cache(REMEMBERED)
    def entry(index: int) -> dict[str, Any]:
        random.seed(arguments["seed"] + index)  # some families draw from the one generator that all share
        made: dict[str, Any] = family[index]
        return made

    def made(_: str | None, __: str | None, metadata: JSON) -> Mapping[str, Any]:
        task = entry(metadata["index"])
        answer = task["answer"]
        right = None if answer is None else float(family.score_answer(answer, task)) >= 1
        return {"question": task["question"], "answer": None if answer is None else str(answer), "right": right}

    def judged(answer: str, question: str | None, metadata: JSON) -> float:
        task = entry(metadata["index"])
        if task["question"] != question:
            raise ValueError("the family makes another task than it did before, so its checker cannot judge this one")
        return float(family.score_answer(final(answer), task))

    return judged if arguments["judge"] else made


def final(answer: str) -> str:
    """Return what stands in the last `<answer>`, else what the answer marks as its result."""
    tagged = _TAGGED.findall(answer)
    return tagged[-1].strip() if tagged else text.final(answer).strip()


def _made(name: str, n: int, seed: int) -> Any:
    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=3, cutoff=0.5)
        meant = f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(sorted(DATASETS))}"
        raise ValueError(f"there is no family {name!r}{meant}")
    if name == "composite":
        raise ValueError("composite is made up of other families, which cannot be named here; name one of them")
    return create_dataset(name, size=n, seed=seed)


if __name__ == "__main__":
    serve(prepare)
