"""Lessons that quote: words in a row, names, numbers, codes or answers that a single group of the step holds.

A lesson is worth something beyond the task it came from. One that repeats what a single group said carries its answer,
or whom it was about, to everybody. What several groups share is taken for the language of the work, and so is what
stands in the library already. Where several principals made the groups, one of them alone is no language either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from tfgrpo.safety import grammar, tools
from tfgrpo.safety.holdings import Holdings, bare, in_a_row, names, parts, plain
from tfgrpo.types import Group, Library

WORDS: Final = 8
"""Words in a row that may not be shared with a single group."""
FEWEST: Final = 2
"""Groups from which on a word can be told to be one group's own: with one, every word is."""

_NUMBER: Final = re.compile(r"(?<![^\W\d_])\d{3,}(?![^\W\d_])")
_ROUND: Final = (100, 180, 360, 365, 366, 1_000, 1_024, 10_000, 1_000_000)
_CALENDAR: Final = (
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|july|august"
    "|september|october|november|december"
)
_EVERYDAY: Final = frozenset(_CALENDAR.split("|")) | {str(number) for number in _ROUND}
"""Numbers and names of everybody's. They are an answer's own only where they are the answer."""
_CODE: Final = re.compile(r"\b(?=\w*\d)(?=\w*[^\W\d_])\w{5,}")
_CAPITAL: Final = re.compile(r"(?<![^\W_])(?=\w{3})[^\W\d_a-z][^\W\d_]+(?:['’][^\W\d_]{3,})?")
_ANSWER: Final = re.compile(
    r"(?:\b(?:answers?|results?|solutions?|totals?)\W+(?:\w+\W+){0,3}?(?:is|are|be|as|equals?|with|of)\b|=)\W*",
    re.IGNORECASE,
)
"""What stands before an answer that is given away."""


class Guard:
    """Says of a text why it cannot be a lesson: by `check`, for tools it names, or for what it shares with one group.

    Compared is all that a group holds: messages, what tools are called with, references, and what labels say. A name
    that begins a sentence of the lesson must stand in what the model did not say itself.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        library: Library,
        check: Callable[[str], str | None] = grammar.fault,
    ) -> None:
        self._groups = groups
        texts = [entry.text for entry in library.experiences]
        self._known = {*in_a_row(texts, WORDS), *parts(texts)}
        self._check = check
        offered = [group.task.tools for group in groups if group.task.tools is not None]
        self._tools = frozenset[str]().union(*offered) if offered else None

    def __call__(self, text: str) -> str | None:
        """Return the reason for which `text` is refused, None when it is not."""
        return next(self._reasons(text), None)

    def _reasons(self, text: str) -> Iterator[str]:
        if (reason := self._check(text)) is not None:
            yield reason
        if self._tools is not None and (reason := tools.fault(text, self._tools)) is not None:
            yield reason
        for run in in_a_row([text], WORDS):
            if run not in self._known and (owner := self._held.owner(run)) is not None:
                yield f"it shares {WORDS} words in a row with {owner} ({run!r}); say what holds beyond it"
        if len(self._groups) < FEWEST:
            return
        everybody = self._known | (_EVERYDAY - set(self._answers))
        for token, owner in self._rare(text):
            if bare(token) not in everybody:
                yield f"it holds {token!r}, which only {owner} knows; say what holds beyond it"
        for answer in self._answers:
            if self._gives(text, answer):
                # Not that it is right: the optimizer reads this, and may not be one that answers are shown to.
                yield f"it holds {answer!r}, which only one group knows; say what holds beyond it"

    def _rare(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the numbers, codes and names of a text that only one group, or one principal, holds; and which."""
        held, inside = self._held, names([text])
        found = [*_NUMBER.findall(plain(text)), *_CODE.findall(plain(text))]
        for word in _CAPITAL.findall(text):
            name = bare(word)
            if name in (held.names if name in inside else held.addressed):
                found.append(word)
        for token in found:
            if (owner := held.owner_of(bare(token))) is not None:
                yield token, owner

    @staticmethod
    def _gives(text: str, answer: str) -> bool:
        ends = (text[found.end() :].casefold() for found in _ANSWER.finditer(text))
        return any(re.match(rf"{re.escape(answer)}(?!\w)", end) for end in ends)

    @cached_property
    def _held(self) -> Holdings:
        return Holdings(self._groups)

    @cached_property
    def _answers(self) -> list[str]:
        """The right answers that only one group has."""
        found = Counter(group.task.reference.strip().casefold() for group in self._groups if group.task.reference)
        return [answer for answer, count in found.items() if count == 1 and answer]
