"""What a text says about behaviours: a reader for instructions ("never restate the units") and reports.

It finds each act near its thing, and decides by the negating words around them whether the text is for it or against
it, how strongly, and whether it tells what was done or what should be. It reads any text and never fails; it is no
grammar, and a sentence that is twisted enough will be misread, as by a real model.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from tfgrpo.simulation.lexicon import LEXICON, Kind, Symbol
from tfgrpo.simulation.sentence import Mention, Sentence
from tfgrpo.simulation.vocabulary import Form

# A line break ends a sentence, but for one inside wrapped prose (the next line starts with a small letter).
_BREAK = re.compile(r"\n(?![ \t]*[a-z])")
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)*|\d+(?:[.,]\d+)*|[.!?;,:()\u2014\u2013]")
_BREAKS_IN_PROSE = re.compile(r"\n(?=[ \t]*[A-Z])")
_DETERMINERS = frozenset({"the", "this", "your", "its"})


class Reading(NamedTuple):
    """What a text says, and how long it is in words and marks."""

    mentions: tuple[Mention, ...]
    length: int


def parse(text: str) -> tuple[Mention, ...]:
    """Everything `text` says about behaviours, in order."""
    return read(text).mentions


def read(text: str) -> Reading:
    """Everything `text` says about behaviours, with its length."""
    # A capital after a line break starts a sentence; lowering the text would hide it.
    marked = _BREAKS_IN_PROSE.sub("\n;", text) if "\n" in text else text
    lines = _BREAK.split(marked.replace("\u2019", "'").lower())
    if len(lines) == 1:
        return _line(lines[0])
    readings = [_line(line) for line in lines]
    mentions = tuple(mention for reading in readings for mention in reading.mentions)
    return Reading(mentions, sum(reading.length for reading in readings) + len(lines) - 1)


@lru_cache(maxsize=8192)
def _line(text: str) -> Reading:
    """What a text without a break between lines says. The same lines come back in every prompt of a run."""
    words = _TOKEN.findall(text)
    sentence = Sentence()
    found: list[Mention] = []
    known = LEXICON.get
    at, end = 0, len(words)
    while at < end:
        entry = known(words[at])
        if entry is None:
            at += 1
            continue
        symbol, length = _phrase(entry, words, at)
        if symbol is None:
            at += 1
            continue
        if symbol.kind is Kind.BREAK:
            found.extend(sentence.finish())
            sentence = Sentence() if sentence.touched else sentence
        elif symbol.kind is not Kind.ACT or symbol.form is Form.GERUND or not _is_noun(words, at):
            sentence.take(symbol, at, length)
        at += length
    found.extend(sentence.finish())
    return Reading(tuple(found), end)


def _phrase(entry: tuple[tuple[tuple[str, ...], Symbol], ...], words: list[str], at: int) -> tuple[Symbol | None, int]:
    for tail, symbol in entry:
        if not tail or tuple(words[at + 1 : at + 1 + len(tail)]) == tail:
            return symbol, len(tail) + 1
    return None, 1


def _is_noun(words: list[str], at: int) -> bool:
    """Whether a word that may be a verb follows a determiner: "the list", "this record"."""
    return at > 0 and words[at - 1] in _DETERMINERS
