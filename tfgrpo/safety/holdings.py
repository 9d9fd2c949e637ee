"""What groups hold: words in a row, words, names, each with the number of groups that hold it.

A name is a word that is written with a capital where no sentence begins, and small by no group: what the language of
the work is, some group writes small. Models head lines and steps with capitals, so it also counts whether a name stands
in what the model did not say itself: tasks, turns of the user, results of tools, labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tfgrpo.types import Group, Message

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_PART: Final = re.compile(r"\w+")
_THOUSANDS: Final = re.compile(r"(?<=\d)[,'’](?=\d{3}(?!\d))")
_REST: Final = r"(?:(?:['’][A-Z])?[^\W\d_A-Z]{2,}(?:[A-Z][^\W\d_A-Z]+)?|[A-Z]{5,})(?![^\W_])"
"""How a name goes on after its first letter. Capitals alone are one from six on: fewer are an abbreviation."""
_INSIDE: Final = (
    r"(?<=[\w,;)] [A-Z])|(?<=[\"'’(=/&@][A-Z])|(?<=,\n[A-Z])|(?<=\b(?:Dr|Mr|Ms)\. [A-Z])|(?<=\bMrs\. [A-Z])"
)
"""What stands before a capital that no sentence begins with. The capital comes first: most of a text is skipped."""
_NAMED: Final = re.compile(rf"[A-Z](?:{_INSIDE}){_REST}")
_ADDRESSED: Final = re.compile(rf"[A-Z](?:{_INSIDE}|(?<=: [A-Z])){_REST}")


class Holdings:
    """What some groups hold together. Words are in small letters, names without a genitive's ending.

    Who made groups owns what they hold. Where a run has one principal, or nobody knows them, that is each group itself.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        makers = {one for group in groups for one in group.principals}
        self._owners = [group.principals if len(makers) > 1 else () for group in groups]
        apart = [_apart(group) for group in groups]
        spoken = [[_WORD.findall(text) for text in (*ours, *theirs)] for ours, theirs in apart]
        self._texts = ["\n".join(" ".join(words).casefold() for words in texts) for texts in spoken]
        self._words = [frozenset(text.split()) for text in self._texts]
        self._tokens = [frozenset(parts([*ours, *theirs])) for ours, theirs in apart]
        said = {word for texts in spoken for words in texts for word in words}
        small = {bare(word) for word in said if word == word.lower()}
        addressed = {bare(name) for _, theirs in apart for text in theirs for name in _ADDRESSED.findall(text)}
        self.names = frozenset(addressed.union(*(names(ours) for ours, _ in apart)) - small)
        self.addressed = frozenset(addressed - small)
        """Names that stand in what the model did not say itself."""

    def owner(self, run: str) -> str | None:
        """Return who alone holds these words in a row: `one group`, `one principal`, or None."""
        # Most groups lack one of the words, and need not be searched.
        needed, found = set(run.split(" ")), re.compile(rf"(?<!\S){re.escape(run)}(?!\S)")
        pairs = enumerate(zip(self._words, self._texts, strict=True))
        return self._alone([at for at, (words, text) in pairs if needed <= words and found.search(text)])

    def owner_of(self, token: str) -> str | None:
        """Return who alone holds a word, a number or a code, likewise."""
        return self._alone([at for at, tokens in enumerate(self._tokens) if token in tokens])

    def _alone(self, groups: Sequence[int]) -> str | None:
        if len(groups) == 1:
            return "one group"
        owners = {one for at in groups for one in self._owners[at]}
        return "one principal" if len(owners) == 1 else None


def in_a_row(texts: Iterable[str], words: int) -> Iterator[str]:
    """Yield the runs of so many words, in small letters."""
    for text in texts:
        said = _words(text)
        yield from (" ".join(said[at : at + words]) for at in range(len(said) - words + 1))


def parts(texts: Iterable[str]) -> Iterator[str]:
    """Yield words, numbers and codes in small letters, numbers without the marks of thousands."""
    for text in texts:
        yield from _PART.findall(plain(text).casefold())


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
