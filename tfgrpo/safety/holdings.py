"""What groups hold: words in a row, words, names, each with the number of groups that hold it.

A name is a word that is written with a capital where no sentence begins, and small by no group: what the language of
the work is, some group writes small. Models head lines and steps with capitals, so it also counts whether a name stands
in what the model did not say itself: tasks, turns of the user, results of tools, labels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tfgrpo.types import Group, Message

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_PART: Final = re.compile(r"\w+")
_THOUSANDS: Final = re.compile(r"(?<=\d)[,'’](?=\d{3}(?!\d))")
_NAME: Final = r"(?:[A-Z](?:['’][A-Z])?[^\W\d_A-Z]{2,}(?:[A-Z][^\W\d_A-Z]+)?|[A-Z]{6,})(?![^\W_])"
"""How a name is written. Capitals alone are one from six on: fewer are taken for an abbreviation."""
_INSIDE: Final = r"(?<=[\w,;)] )|(?<=[\"'’(=/&@])|(?<=,\n)|(?<=\b(?:Dr|Mr|Ms)\. )|(?<=\bMrs\. )"
"""What stands before a capital that no sentence begins with."""
_NAMED: Final = re.compile(rf"(?:{_INSIDE}){_NAME}")
_ADDRESSED: Final = re.compile(rf"(?:{_INSIDE}|(?<=: )){_NAME}")


@dataclass(frozen=True, slots=True)
class Holdings:
    """What some groups hold together. Words are in small letters, names without a genitive's ending."""

    texts: tuple[str, ...]
    """All that each group says, as words with one blank between them and a line for each text."""
    words: tuple[frozenset[str], ...]
    tokens: Counter[str]
    """How many groups hold a word, a number, a code."""
    names: frozenset[str]
    addressed: frozenset[str]
    """Names that stand in what the model did not say itself."""

    def count(self, run: str) -> int:
        """Return how many groups hold these words in a row."""
        # Most groups lack one of the words, and need not be searched.
        needed, found = set(run.split(" ")), re.compile(rf"(?<!\S){re.escape(run)}(?!\S)")
        pairs = zip(self.words, self.texts, strict=True)
        return sum(needed <= words and found.search(text) is not None for words, text in pairs)


def holdings(groups: Sequence[Group]) -> Holdings:
    """Return what `groups` hold."""
    said: list[str] = []
    tokens = Counter[str]()
    small, named, addressed = set[str](), set[str](), set[str]()
    for group in groups:
        ours, theirs = _apart(group)
        said.append("\n".join(" ".join(_words(text)) for text in (*ours, *theirs)))
        tokens.update(set(parts([*ours, *theirs])))
        small.update(word for text in (*ours, *theirs) for word in _WORD.findall(text) if word == word.lower())
        named.update(names(ours))
        addressed.update(bare(found) for text in theirs for found in _ADDRESSED.findall(text))
    known = {bare(word) for word in small}
    kept = tuple(frozenset(text.split()) for text in said)
    return Holdings(tuple(said), kept, tokens, frozenset((named | addressed) - known), frozenset(addressed - known))


def in_a_row(texts: Iterable[str], words: int) -> Iterator[str]:
    """Yield the runs of so many words, in small letters."""
    for text in texts:
        said = _words(text)
        yield from (" ".join(said[at : at + words]) for at in range(len(said) - words + 1))


def parts(texts: Iterable[str]) -> Iterator[str]:
    """Yield words, numbers and codes in small letters, numbers without the marks of thousands."""
    for text in texts:
        yield from (part.casefold() for part in _PART.findall(plain(text)))


def names(texts: Iterable[str]) -> set[str]:
    """Return what is written as a name, in small letters."""
    return {bare(found) for text in texts for found in _NAMED.findall(text)}


def plain(text: str) -> str:
    """Return a text with its numbers written without marks of thousands."""
    return _THOUSANDS.sub("", text)


def bare(word: str) -> str:
    """Return a word in small letters, without a genitive's ending."""
    return re.sub(r"['’]s$", "", word.casefold())


def _apart(group: Group) -> tuple[list[str], list[str]]:
    """Return what the model said in a group, and everything else that was said."""
    ours: list[str] = []
    theirs = [comment for rollout in group.rollouts for comment in rollout.comments]
    theirs += [group.task.reference] if group.task.reference else []
    for message in (*group.task.messages, *(one for rollout in group.rollouts for one in rollout.messages)):
        (ours if message.role == "assistant" else theirs).extend(_said(message))
    return ours, theirs


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _said(message: Message) -> list[str]:
    return [message.text, *(call.arguments for call in message.tool_calls)]
