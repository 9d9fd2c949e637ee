"""Which entries of a library that is over its budget a trajectory gets: the most relevant to its first request.

Pure and deterministic: training, evaluation and serving call it alike, and the same request gets the same entries on
every machine. It knows nothing of models, and understands words only by their letters.

Source of the score: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and
Trends in Information Retrieval 3(4), 2009, section 3.4, with its usual k1 = 1.2 and b = 0.75; the weight of a word is
log(1 + (N - n + 0.5) / (n + 0.5)), which is never negative. A word of the request counts once, however often it stands
there: requests are long, entries short.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tfgrpo import library as libraries
from tfgrpo.library import Limits
from tfgrpo.types import Library, Message

K1: Final = 1.2
B: Final = 0.75

READ: Final = 20_000
"""How many characters of a first request are looked at; a task is said in fewer."""

_WORD: Final = re.compile(r"\w+")


def first_request(messages: Sequence[Message]) -> str:
    """Return the text that a trajectory's entries are chosen by: what stands before the first answer, but no system
    text, which is the same for every task. Later turns of a conversation that is sent whole give the same text.
    """
    texts: list[str] = []
    for message in messages:
        if message.role == "assistant":
            break
        if message.role not in ("system", "developer"):
            texts.append(libraries.strip(message.text))
    return "\n".join(texts)[:READ]


class Selector:
    """Chooses from one library within `limits` (entries and tokens). It is made once, and asked for each trajectory."""

    def __init__(self, library: Library, limits: Limits) -> None:
        self._entries = library.experiences
        self._limits = limits
        counts = [Counter(_words(entry.text)) for entry in self._entries]
        mean = sum(count.total() for count in counts) / max(1, len(counts)) or 1.0
        found_in = Counter(word for count in counts for word in count)
        self._worth = [_worth(count, found_in, mean, len(counts)) for count in counts]

    def ids(self, text: str) -> tuple[str, ...]:
        """Return the ids of the chosen entries, in the library's order.

        The best go first as long as they fit; of equals the earlier id. What does not fit is passed over, and a
        smaller one behind it may still be taken.
        """
        asked = frozenset(_words(text))
        scores = [sum(worth for word, worth in words.items() if word in asked) for words in self._worth]
        order = sorted(range(len(scores)), key=lambda at: (-scores[at], _number(self._entries[at].id)))
        chosen: set[int] = set()
        characters = 0
        for at in order:
            grown = characters + len(self._entries[at].text) + 1
            if self._fit(len(chosen) + 1, grown):
                chosen.add(at)
                characters = grown
        return tuple(entry.id for at, entry in enumerate(self._entries) if at in chosen)

    def _fit(self, entries: int, characters: int) -> bool:
        most = self._limits
        few = most.entries is None or entries <= most.entries
        return few and (most.tokens is None or characters <= most.tokens * libraries.CHARACTERS_PER_TOKEN)


def part(library: Library, ids: Sequence[str] | set[str]) -> Library:
    """Return the library with these entries alone, in its own order."""
    return replace(library, experiences=tuple(entry for entry in library.experiences if entry.id in ids))


def _worth(count: Counter[str], found_in: Counter[str], mean: float, entries: int) -> dict[str, float]:
    """Return what each word of an entry adds to its score, where a request has it."""
    norm = K1 * (1 - B + B * count.total() / mean)
    return {
        word: math.log1p((entries - found_in[word] + 0.5) / (found_in[word] + 0.5)) * times * (K1 + 1) / (times + norm)
        for word, times in sorted(count.items())
    }


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _number(id_: str) -> tuple[int, str]:
    """Order e2 before e10."""
    digits = id_.removeprefix("e")
    return (int(digits) if digits.isascii() and digits.isdigit() else 0, id_)
