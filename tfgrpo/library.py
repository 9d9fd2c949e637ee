"""The experience library as a value: apply operations, compare, show as a prompt block, take the block out again.

Pure. It knows nothing of models, stores or HTTP, and not of how operations came about. Ids are given once: an
update keeps its id, a merge keeps the id of the first entry it names, a deleted id is never given again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from tfgrpo.safety import grammar
from tfgrpo.types import Experience, Library, Operation, Refusal

CHARACTERS_PER_TOKEN = 4
"""A rough count, for the bound on a library only."""

BLOCK_START = "<<<tfgrpo experiences"
BLOCK_END = "<<<end of tfgrpo experiences>>>"

_BLOCK = re.compile(
    r"(?:\n\n)?"
    + re.escape(BLOCK_START)
    # No "<<<" inside: `render` writes none there, a marker without its end cannot swallow what stands between it and a
    # later block, and a search through many of them stays linear.
    + r" [^\s<>@]+@\d+ [0-9a-f]{12}>>>\n[^<]*+(?:<(?!<<)[^<]*+)*+"
    + re.escape(BLOCK_END)
)
_SPACE = re.compile(r"\s+")
_TRIPLE = re.compile(r"<(?=<<)")
"""Each `<` that two more follow: with a space after them no run of `<` keeps three in a row."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a library may grow to, and how far one edit may go.

    `entries` and `tokens` bound the library (its lines as the policy reads them, counted roughly), `words` a lesson
    (the paper's 32), `edits` the operations of one step. None is no bound. `fault` says why a text cannot be a lesson.
    """

    entries: int | None = 50
    words: int = 32
    edits: int | None = None
    tokens: int | None = None
    fault: Callable[[str], str | None] = grammar.fault


@dataclass(frozen=True, slots=True)
class Edit:
    """The outcome of applying operations: the new library, what was applied and what was refused, in order."""

    library: Library
    applied: tuple[Operation, ...]
    refused: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """How one library differs from another. `changed` holds pairs (before, after) of one id."""

    added: tuple[Experience, ...]
    removed: tuple[Experience, ...]
    changed: tuple[tuple[Experience, Experience], ...]


class _Refused(Exception):  # noqa: N818 - control flow of this module only
    """An operation that cannot be applied; the text is the reason."""


def apply(library: Library, operations: Iterable[Operation], *, limits: Limits | None = None) -> Edit:
    """Return `library` with `operations` applied one after the other.

    An operation that cannot be applied (unknown id, no text, a text over the word limit, a doublet, a full
    library) changes nothing and is reported with its reason; the others go on. `keep` is accepted and changes
    nothing.
    """
    limits = limits or Limits()
    applied: list[Operation] = []
    refused: list[Refusal] = []
    for operation in operations:
        try:
            library = _apply_one(library, operation, limits, done=len(applied))
        except _Refused as reason:
            refused.append(Refusal(operation, str(reason)))
        else:
            applied.append(operation)
    return Edit(library, tuple(applied), tuple(refused))


def fit(library: Library, limits: Limits) -> Edit:
    """Return `library` without as many entries as it takes to fit the limits: the last resort.

    The least supported go first, of equals the newest.
    """
    dropped: list[Operation] = []
    while library.experiences and not fits(library, limits):
        at = min(range(len(library)), key=lambda i: (library.experiences[i].support, -i))
        gone = library.experiences[at]
        why = f"the library is over its limit and this entry has the least support ({gone.support})"
        dropped.append(Operation("delete", (gone.id,), None, why))
        library = replace(library, experiences=tuple(e for e in library.experiences if e is not gone))
    return Edit(library, tuple(dropped), ())


def fits(library: Library, limits: Limits) -> bool:
    """Return whether a library is within the limits of entries and tokens."""
    few = limits.entries is None or len(library) <= limits.entries
    return few and (limits.tokens is None or tokens(library) <= limits.tokens)


def tokens(library: Library) -> int:
    """Return roughly how many tokens the entries of a library take in a prompt."""
    return -(-sum(len(entry.text) + 1 for entry in library.experiences) // CHARACTERS_PER_TOKEN)


def from_texts(texts: Iterable[str], *, next_id: int = 1) -> Library:
    """Return a library of these lessons, in order. White space is folded, blank texts and doublets are left out."""
    kept = [text for text in dict.fromkeys(map(_fold, texts)) if text]
    entries = tuple(Experience(f"e{number}", text) for number, text in enumerate(kept, start=next_id))
    return Library(entries, next_id + len(kept))


def diff(before: Library, after: Library) -> Diff:
    """Return what an edit from `before` to `after` added, removed and changed, by id."""
    old = {entry.id: entry for entry in before.experiences}
    new = {entry.id: entry for entry in after.experiences}
    return Diff(
        added=tuple(entry for entry in after.experiences if entry.id not in old),
        removed=tuple(entry for entry in before.experiences if entry.id not in new),
        changed=tuple(
            (old[entry.id], entry)
            for entry in after.experiences
            if entry.id in old and old[entry.id].text != entry.text
        ),
    )


def render(library: Library, *, name: str, version: int) -> str:
    """Return the prompt block of a library: a pure function of its arguments, "" for an empty library.

    The block stands between two marker lines that carry `name@version` and a digest of the lessons, so that an
    echoed block is found by them alone. Each lesson is a line as it is: bullets and an introduction make small
    models (seen with 135M parameters) follow it less.
    """
    if not library.experiences:
        return ""
    lessons = "\n".join(_defuse(entry.text) for entry in library.experiences)
    digest = hashlib.sha256(lessons.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{BLOCK_START} {name}@{version} {digest}>>>\n{lessons}\n{BLOCK_END}"


def strip(text: str) -> str:
    """Return `text` without any block that `render` made, and without the blank line that set it apart."""
    return _BLOCK.sub("", text) if BLOCK_START in text else text


def spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return where the blocks that `strip` takes out begin and end, in order."""
    return tuple(found.span() for found in _BLOCK.finditer(text)) if BLOCK_START in text else ()


def lines(library: Library) -> str:
    """Return the library as the optimizer reads it: lines `[id] text`."""
    return "\n".join(f"[{entry.id}] {entry.text}" for entry in library.experiences)


def _apply_one(library: Library, operation: Operation, limits: Limits, *, done: int) -> Library:
    if limits.edits is not None and done >= limits.edits:
        raise _Refused(f"only {limits.edits} edits are allowed in one step")
    match operation.operation:
        case "keep":
            return library
        case "add":
            return _add(library, operation, limits)
        case "update":
            return _update(library, operation, limits)
        case "merge":
            return _merge(library, operation, limits)
        case "delete":
            (found,) = _named(library, operation, exactly=1)
            return replace(library, experiences=tuple(e for e in library.experiences if e is not found))


def _add(library: Library, operation: Operation, limits: Limits) -> Library:
    if operation.ids:
        raise _Refused(f"add names ids ({', '.join(operation.ids)}); to change an entry, update it")
    text = _text(library, operation, limits, but=())
    if limits.entries is not None and len(library) >= limits.entries:
        raise _Refused(f"the library is full ({limits.entries} entries); merge or delete first")
    entry = Experience(f"e{library.next_id}", text, _union(operation.sources))
    return _bounded(library, Library((*library.experiences, entry), library.next_id + 1), limits)


def _update(library: Library, operation: Operation, limits: Limits) -> Library:
    (found,) = _named(library, operation, exactly=1)
    text = _text(library, operation, limits, but=(found.id,))
    entry = replace(found, text=text, sources=_union(found.sources, operation.sources), support=found.support + 1)
    changed = replace(library, experiences=tuple(entry if e is found else e for e in library.experiences))
    return _bounded(library, changed, limits)


def _merge(library: Library, operation: Operation, limits: Limits) -> Library:
    found = _named(library, operation, exactly=None)
    text = _text(library, operation, limits, but=tuple(e.id for e in found))
    first = found[0]
    entry = replace(
        first,
        text=text,
        sources=_union(*(e.sources for e in found), operation.sources),
        support=sum(e.support for e in found),
    )
    gone = {e.id for e in found[1:]}
    return replace(
        library,
        experiences=tuple(entry if e is first else e for e in library.experiences if e.id not in gone),
    )


def _bounded(before: Library, after: Library, limits: Limits) -> Library:
    """Return `after`, unless it grew beyond the limit of tokens."""
    size = tokens(after)
    if limits.tokens is not None and size > limits.tokens and size > tokens(before):
        raise _Refused(f"the library would take {size} tokens, {limits.tokens} are allowed; merge or delete first")
    return after


def _named(library: Library, operation: Operation, *, exactly: int | None) -> tuple[Experience, ...]:
    """Return the entries that the operation names, in the order it names them."""
    ids = tuple(dict.fromkeys(operation.ids))
    if exactly is not None and len(ids) != exactly:
        raise _Refused(f"{operation.operation} needs one id, got {len(ids)}")
    if exactly is None and len(ids) < 2:  # noqa: PLR2004 - merging takes two
        raise _Refused(f"merge needs two or more different ids, got {len(ids)}")
    by_id = {entry.id: entry for entry in library.experiences}
    unknown = [id_ for id_ in ids if id_ not in by_id]
    if unknown:
        raise _Refused(f"no entry has the id {', '.join(unknown)}")
    return tuple(by_id[id_] for id_ in ids)


def _text(library: Library, operation: Operation, limits: Limits, *, but: Sequence[str]) -> str:
    text = _fold(operation.text or "")
    if not text:
        raise _Refused(f"{operation.operation} has no text")
    count = len(text.split(" "))
    if count > limits.words:
        raise _Refused(f"{count} words, {limits.words} are allowed")
    if (fault := limits.fault((operation.text or "").strip())) is not None:
        raise _Refused(fault)
    double = next((e.id for e in library.experiences if e.id not in but and e.text.casefold() == text.casefold()), None)
    if double is not None:
        raise _Refused(f"entry {double} says the same already")
    return text


def _union(*sources: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source for some in sources for source in some))


def _fold(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _defuse(text: str) -> str:
    """Keep a lesson from looking like one of our marker lines, which would end the block early."""
    return _TRIPLE.sub("< ", text)
