"""From the proposals of a batch to one edit of the library.

One call of the optimizer sees every proposal, so that agreement counts as evidence. Where its operations come from
is worked out here, by what they name and say: the model is not asked for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import Final

from msgspec.structs import replace

from tfgrpo import deletions
from tfgrpo import library as libraries
from tfgrpo.errors import RequestRefused
from tfgrpo.library import Edit, Limits
from tfgrpo.optimizer import Optimizer
from tfgrpo.prompts import section
from tfgrpo.types import Library, Operation, Refusal

ALIKE: Final = 0.6
"""Share of words two texts have in common from which they are taken for one lesson."""

NEAR: Final = 0.9
"""Share of a limit from which the optimizer is told of it."""

CONTESTED: Final = "it is on trial, and lessons contradict each other: rewards decide on it"

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
    optimizer: Optimizer,
    library: Library,
    proposals: Sequence[Operation],
    limits: Limits,
    *,
    rejected: Sequence[Refusal] = (),
    remembered: Sequence[Refusal] = (),
    contested: frozenset[str] = frozenset(),
) -> Consolidation:
    """Merge `proposals` into one edit and apply it. No proposal, and nothing to make smaller, no call.

    Every applied operation carries in `sources` the keys of the groups it rests on. The optimizer is shown `rejected`
    and `remembered`; a text of `rejected` is not taken again, whatever it says, and
    no entry of `contested` is deleted. A library that is over its limits afterwards loses its least supported entries.
    """
    smaller = libraries.fit(library, limits).applied
    if not proposals and not smaller:
        return Consolidation(Edit(library, (), ()))
    sections = [section("library", libraries.lines(library)), section("operations", as_lines(proposals))]
    if remembered or rejected:
        sections.append(section("rejected", "\n".join(map(rejection, (*remembered, *rejected)))))
    if bound := _bound(library, limits):
        sections.append(section("feedback", bound))

    def refusals(operations: tuple[Operation, ...]) -> list[str]:
        # Too many edits, or one that was refused before, is no fault that sending the answer again would mend.
        refused = libraries.apply(library, operations, limits=replaced(limits, edits=None)).refused
        return [f"{one.operation.operation} {one.operation.text or ''}: {one.reason}" for one in refused]

    faults: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    try:
        answer = await optimizer.operations("consolidate", sections, check=refusals)
    except RequestRefused as error:
        faults = (f"consolidate: {error}",)
    else:
        edits = replacements(answer.value, proposals)
        operations = tuple(trace(one, proposals) for one in edits if one.operation != "keep")
        # What apply refuses is reported by it, with the operation; only what could not be read is left to say.
        unread = answer.faults[: len(answer.faults) - len(refusals(answer.value))]
        faults = tuple(f"consolidate: {fault}" for fault in unread)
    early = [one for one in operations if one.operation == "delete" and contested & set(one.ids)]
    edit = applied(library, [one for one in operations if one not in early], limits, rejected)
    refused = (*edit.refused, *(Refusal(one, CONTESTED) for one in early))
    return Consolidation(Edit(edit.library, edit.applied, refused), faults)


def applied(
    library: Library, operations: Sequence[Operation], limits: Limits, rejected: Sequence[Refusal] = ()
) -> Edit:
    """Apply what was not rejected before, of too many edits the best supported, and keep within the limits."""
    barred = {_plain(one.operation.text): one.reason for one in rejected if one.operation.text}
    again = [one for one in operations if one.text and _plain(one.text) in barred]
    rest = [one for one in operations if one not in again]
    most = len(rest) if limits.edits is None else limits.edits
    ranked = sorted(range(len(rest)), key=lambda at: -len(rest[at].sources))
    chosen = [rest[at] for at in sorted(ranked[:most])]
    over = [rest[at] for at in sorted(ranked[most:])]
    edit = deletions.apply(library, chosen, limits)
    pruned = libraries.fit(edit.library, limits)
    refused = (
        *edit.refused,
        *(Refusal(one, f"refused before: {barred[_plain(one.text)]}") for one in again),
        *(Refusal(one, f"only {most} edits are allowed in one step, and others have more support") for one in over),
    )
    return Edit(pruned.library, (*edit.applied, *pruned.applied), refused)


def rejection(refusal: Refusal) -> str:
    """Return a refused operation as the optimizer reads it."""
    operation = refusal.operation
    named = " ".join([operation.operation, *operation.ids])
    return f"- {named}: {operation.text or ''} (refused: {refusal.reason})"


def _bound(library: Library, limits: Limits) -> str:
    """What to say of the library's limits; "" while it is far from them."""
    said = []
    if limits.entries is not None and len(library) >= NEAR * limits.entries:
        said.append(f"{limits.entries} entries (it has {len(library)})")
    if limits.tokens is not None and libraries.tokens(library) >= NEAR * limits.tokens:
        said.append(f"{limits.tokens} tokens (it has {libraries.tokens(library)})")
    if not said:
        return ""
    return f"The library may hold at most {' and '.join(said)}: merge or delete entries before anything is added."


def _plain(text: str | None) -> str:
    return " ".join((text or "").casefold().split())


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


def replacements(operations: Sequence[Operation], proposals: Sequence[Operation]) -> list[Operation]:
    """Return operations with each update that puts another lesson in an entry's place as what it is: delete and add.

    It is one when more proposals wanted the entry away than reworded. So an id never comes to say the opposite, and
    what was seen of the old lesson is not held against the new one.
    """
    balance: Counter[str] = Counter()
    for one in proposals:
        for id_ in one.ids:
            balance[id_] += 1 if one.operation == "delete" else -1
    found: list[Operation] = []
    for one in operations:
        if one.operation == "update" and len(one.ids) == 1 and balance[one.ids[0]] > 0:
            found += [Operation("delete", one.ids, None, one.why), Operation("add", (), one.text, one.why)]
        else:
            found.append(one)
    return found


def _akin(operation: Operation, proposal: Operation) -> bool:
    if set(operation.ids) & set(proposal.ids):
        return True
    return alike(operation.text, proposal.text)


def alike(left: str | None, right: str | None) -> bool:
    """Whether two texts say nearly the same: most of their words, and both for or both against it."""
    return _overlap(left, right) >= ALIKE and _negates(left) == _negates(right)


def _negates(text: str | None) -> bool:
    """Whether a text speaks against something: with nearly the same words, one that does not says the opposite."""
    return bool(_words(text) & _NEGATIONS)


def _overlap(left: str | None, right: str | None) -> float:
    a, b = _words(left), _words(right)
    return len(a & b) / len(a | b) if a and b else 0.0


def _words(text: str | None) -> set[str]:
    return set(_WORD.findall((text or "").casefold()))
