"""From the proposals of a batch to one edit of the library.

One call of the optimizer sees every proposal, so that agreement counts as evidence. Where its operations come from
is worked out here, by what they name and say: the model is not asked for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from tfgrpo import library as libraries
from tfgrpo.errors import RequestRefused
from tfgrpo.library import Edit, Limits
from tfgrpo.optimizer import Optimizer
from tfgrpo.prompts import section
from tfgrpo.types import Library, Operation

ALIKE: Final = 0.6
"""Share of words two texts have in common from which they are taken for one lesson."""

_WORD: Final = re.compile(r"[\w']+")
_NEGATIONS: Final = frozenset(
    """no not never don't doesn't without avoid avoids avoiding refrain stop skip instead nor neither""".split()  # noqa: SIM905 - a list of words reads better as words
)


@dataclass(frozen=True, slots=True)
class Consolidation:
    """One edit, and what could not be read of the answer it came from."""

    edit: Edit
    faults: tuple[str, ...] = ()


async def consolidate(
    optimizer: Optimizer, library: Library, proposals: Sequence[Operation], limits: Limits
) -> Consolidation:
    """Merge `proposals` into one edit and apply it. No proposal, no call.

    Every applied operation carries in `sources` the keys of the groups it rests on.
    """
    if not proposals:
        return Consolidation(Edit(library, (), ()))
    sections = [section("library", libraries.lines(library)), section("operations", as_lines(proposals))]

    def refusals(operations: tuple[Operation, ...]) -> list[str]:
        refused = libraries.apply(library, operations, limits=limits).refused
        return [f"{one.operation.operation} {one.operation.text or ''}: {one.reason}" for one in refused]

    try:
        answer = await optimizer.operations("consolidate", sections, check=refusals)
    except RequestRefused as error:
        return Consolidation(Edit(library, (), ()), (f"consolidate: {error}",))
    traced = [trace(operation, proposals) for operation in answer.value if operation.operation != "keep"]
    edit = libraries.apply(library, traced, limits=limits)
    # What apply refuses is reported by it, with the operation; only what could not be read is left to say.
    unread = answer.faults[: len(answer.faults) - len(refusals(answer.value))]
    return Consolidation(edit, tuple(f"consolidate: {fault}" for fault in unread))


def as_lines(operations: Sequence[Operation]) -> str:
    """Return operations as the optimizer reads them: one JSON object a line."""
    return "\n".join(
        json.dumps(
            {"operation": one.operation, "ids": list(one.ids), "text": one.text, "why": one.why},
            ensure_ascii=False,
        )
        for one in operations
    )


def trace(operation: Operation, proposals: Sequence[Operation]) -> Operation:
    """Return `operation` with the groups it rests on.

    Those are the groups of the proposals that name one of its entries or say nearly the same; where none does, of all.
    """
    kin = [proposal for proposal in proposals if _akin(operation, proposal)] or proposals
    return replace(operation, sources=tuple(dict.fromkeys(key for one in kin for key in one.sources)))


def _akin(operation: Operation, proposal: Operation) -> bool:
    if set(operation.ids) & set(proposal.ids):
        return True
    return _overlap(operation.text, proposal.text) >= ALIKE and _negates(operation.text) == _negates(proposal.text)


def _negates(text: str | None) -> bool:
    """Whether a text speaks against something: with nearly the same words, one that does not says the opposite."""
    return bool(_words(text) & _NEGATIONS)


def _overlap(left: str | None, right: str | None) -> float:
    a, b = _words(left), _words(right)
    return len(a & b) / len(a | b) if a and b else 0.0


def _words(text: str | None) -> set[str]:
    return set(_WORD.findall((text or "").casefold()))
