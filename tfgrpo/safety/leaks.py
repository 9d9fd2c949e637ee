"""Lessons that quote: words in a row, names, numbers or codes that stand in the trajectories of a single group only.

A lesson is worth something beyond the task it came from. One that repeats what a single group said carries its answer,
or whom it was about, to everybody. What several groups share is taken for the language of the work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from tfgrpo.safety import grammar
from tfgrpo.types import Group, Library

WORDS: Final = 8
"""Words in a row that may not be shared with a single group."""
FEWEST: Final = 2
"""Groups from which on a word can be told to be one group's own: with one, every word is."""

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NUMBER: Final = re.compile(r"\d{3,}")
_CODE: Final = re.compile(r"(?=\w*\d)(?=\w*[^\W\d])\w{5,}")
_NAME: Final = re.compile(r"(?<=[\w,] )[A-Z][^\W\d_]{2,}")
"""A capital that no sentence begins with."""


class Guard:
    """Says of a text why it cannot be a lesson: by `check`, or for what it shares with one of `groups`.

    Names, numbers and codes are those of the groups' tasks and references; words in a row those of all their messages,
    but for what stands in `library` already: a rollout that repeats a lesson it was given owns nothing of it.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        library: Library,
        check: Callable[[str], str | None] = grammar.fault,
    ) -> None:
        self._groups = groups
        self._known = set(_runs(*(entry.text for entry in library.experiences)))
        self._check = check

    def __call__(self, text: str) -> str | None:
        """Return the reason for which `text` is refused, None when it is not."""
        if (reason := self._check(text)) is not None:
            return reason
        if run := next((run for run in _runs(text) if self._spoken[run] == 1 and run not in self._known), None):
            return f"it shares {WORDS} words in a row with one group ({run!r}); say what holds beyond it"
        if len(self._groups) < FEWEST:
            return None
        if token := next((token for token in _rare(text) if self._named[token.casefold()] == 1), None):
            return f"it holds {token!r}, which only one group's task knows; say what holds beyond it"
        return None

    @cached_property
    def _spoken(self) -> Counter[str]:
        """In how many groups each run of words stands."""
        return Counter(run for group in self._groups for run in set(_runs(*_texts(group))))

    @cached_property
    def _named(self) -> Counter[str]:
        """In how many groups' tasks each word stands, however it is written."""
        words: Counter[str] = Counter()
        for group in self._groups:
            said = [*(message.text for message in group.task.messages), group.task.reference or ""]
            words.update({word.casefold() for text in said for word in re.findall(r"\w+", text)})
        return words


def _texts(group: Group) -> list[str]:
    messages = [*group.task.messages, *(message for rollout in group.rollouts for message in rollout.messages)]
    return [message.text for message in messages if message.role != "system"]


def _runs(*texts: str) -> list[str]:
    runs: list[str] = []
    for text in texts:
        words = [word.casefold() for word in _WORD.findall(text)]
        runs += [" ".join(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)]
    return runs


def _rare(text: str) -> list[str]:
    """Return what may be a group's own: numbers of three digits or more, codes, and names."""
    return [*_NUMBER.findall(text), *_CODE.findall(text), *_NAME.findall(text)]
