r"""JSON as language models write it, read without losing what can be read.

Found and repaired: fences, words before and after, reasoning in <think> tags, trailing commas, answers cut at their
end, single quotes, raw line breaks and unescaped quotes inside texts, and LaTeX with single backslashes (`\frac` is
a fraction, never a form feed). `find` never raises. The module does not know what the values mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_MOST_CHARACTERS: Final = 400_000
_MOST_ATTEMPTS: Final = 500
_DEEPEST: Final = 40
_MISSING: Final = object()
"""Stands for a value that was cut before it ended."""

_THOUGHT: Final = re.compile(r"<(think|thinking|reasoning|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHT_END: Final = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
_SPACE: Final = re.compile(r"(?:\s|//[^\n]*)*")
_WORD: Final = re.compile(r"[A-Za-z_][\w.-]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_LETTERS: Final = re.compile(r"[A-Za-z]+")
_WORDS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES: Final = {'"': '"', "'": "'", "\\": "\\", "/": "/", "n": "\n", "r": "\r", "t": "\t"}

_LATEX: Final = frozenset(
    """nabla natural ncong ne nearrow neg neq newcommand newline nexists ngeq nleq nmid noindent nonumber not notin
    nparallel nsim nsubseteq nu nwarrow rangle rbrace rceil rfloor rho right rightarrow rightharpoonup rm roman rvert
    tan tanh tau tbinom text textbf textit textrm texttt tfrac therefore theta thickapprox tilde times to top
    triangle triangleq trianglerighteq""".split()  # noqa: SIM905 - a list of words reads better as words
)
"""Commands that begin like JSON's escapes for a line break, a return or a tab. A form feed or a backspace is never
meant, so that those two escapes need no list."""


class _Unreadable(Exception):  # noqa: N818 - control flow of this module only
    """What stands here is no JSON, however kindly read."""


@dataclass(frozen=True, slots=True)
class Found:
    """One object or array. `cut` says that the text ended before it did: more may have been meant."""

    value: Any
    cut: bool


def find(text: str) -> list[Found]:
    """Return every JSON object and array that stands in `text` at its outermost level, in order."""
    return list(_found(without_thoughts(text)[:_MOST_CHARACTERS]))


def holding(value: Any, key: str) -> Any:
    """Return the object with the member `key`: `value` itself, or what stands one level inside it; else `value`.

    Keys of objects are in lower case then, for models write them as they like.
    """
    lowered = _lowered(value)
    if isinstance(lowered, dict) and key not in lowered:
        inside = [_lowered(one) for one in lowered.values()]
    elif isinstance(lowered, list) and len(lowered) == 1:
        inside = [_lowered(lowered[0])]
    else:
        return lowered
    return next((one for one in inside if isinstance(one, dict) and key in one), lowered)


def _lowered(value: Any) -> Any:
    return {str(key).lower(): one for key, one in value.items()} if isinstance(value, dict) else value


def without_thoughts(text: str) -> str:
    """Return `text` without what a model wrote while it was thinking."""
    text = _THOUGHT.sub("", text)
    ends = list(_THOUGHT_END.finditer(text))
    return text[ends[-1].end() :] if ends else text


def _found(text: str) -> Iterator[Found]:
    position = 0
    for _ in range(_MOST_ATTEMPTS):
        starts = [at for at in (text.find("{", position), text.find("[", position)) if at >= 0]
        if not starts:
            return
        reader = _Reader(text, min(starts))
        try:
            value = reader.value(0)
        except _Unreadable:
            position = min(starts) + 1
        else:
            position = reader.position
            yield Found(value, reader.cut)


class _Reader:
    """Reads one value from `position` on. A text that ends too early closes whatever is open."""

    def __init__(self, text: str, position: int) -> None:
        self._text = text
        self.position = position
        self.cut = False

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise _Unreadable
        match self._next():
            case "":
                self.cut = True
                return _MISSING
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"' | "'" as quote:
                return self._string(quote)
            case _:
                return self._bare()

    def _object(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        self.position += 1
        while True:
            head = self._next()
            if head in ("", "}"):
                self.cut |= not head
                self.position += len(head)
                return result
            if head == ",":
                self.position += 1
                continue
            key = self._name(head)
            if key is _MISSING:
                return result
            if self._next() not in (":", ""):
                raise _Unreadable
            self.position += 1
            value = self.value(depth + 1)
            if value is not _MISSING:
                result[str(key)] = value

    def _array(self, depth: int) -> list[Any]:
        result: list[Any] = []
        self.position += 1
        while True:
            head = self._next()
            if head in ("", "]"):
                self.cut |= not head
                self.position += len(head)
                return result
            if head == ",":
                self.position += 1
                continue
            if head in ("}", ":"):
                raise _Unreadable
            value = self.value(depth + 1)
            if value is not _MISSING:
                result.append(value)

    def _next(self) -> str:
        """Skip white space and comments; return the character that follows, "" at the end."""
        space = _SPACE.match(self._text, self.position)
        self.position = space.end() if space else self.position
        return self._text[self.position : self.position + 1]

    def _name(self, head: str) -> Any:
        if head in ('"', "'"):
            return self._string(head)
        word = _WORD.match(self._text, self.position)
        if word is None:
            raise _Unreadable
        self.position = word.end()
        return word.group()

    def _bare(self) -> Any:
        number = _NUMBER.match(self._text, self.position)
        if number is not None:
            self.position = number.end()
            token = number.group()
            return int(token) if token.lstrip("-").isdigit() else float(token)
        word = _WORD.match(self._text, self.position)
        if word is None:
            raise _Unreadable
        self.position = word.end()
        return _WORDS.get(word.group(), word.group())

    def _string(self, quote: str) -> Any:
        parts: list[str] = []
        text, at = self._text, self.position + 1
        while at < len(text):
            character = text[at]
            if character == "\\":
                piece, at = _escape(text, at)
                parts.append(piece)
            elif character == quote and self._closes(at):
                self.position = at + 1
                return "".join(parts)
            else:
                parts.append(character)
                at += 1
        self.position = len(text)
        self.cut = True
        return _MISSING

    def _closes(self, at: int) -> bool:
        """Whether the quote at `at` ends the text: inside JSON only , : } ] or the end can follow one."""
        following = _SPACE.match(self._text, at + 1)
        end = following.end() if following else at + 1
        return self._text[end : end + 1] in ("", ",", ":", "}", "]")


def _escape(text: str, at: int) -> tuple[str, int]:
    """Return what the backslash at `at` stands for, and where the text goes on."""
    head = text[at + 1 : at + 2]
    if head == "u" and (digits := _HEX.match(text, at + 2)):
        return _unicode(text, at, int(digits.group(), 16))
    run = _LETTERS.match(text, at + 1)
    if head in _ESCAPES and not (run and run.group() in _LATEX):
        return _ESCAPES[head], at + 2
    return "\\", at + 1


def _unicode(text: str, at: int, code: int) -> tuple[str, int]:
    second = _HEX.match(text, at + 8) if text[at + 6 : at + 8] == "\\u" else None
    low = int(second.group(), 16) if second else 0
    if 0xD800 <= code < 0xDC00 <= low < 0xE000:  # noqa: PLR2004 - the ranges of UTF-16 surrogates
        return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), at + 12
    # A lone surrogate cannot be sent or stored as UTF-8.
    return ("\ufffd" if 0xD800 <= code < 0xE000 else chr(code)), at + 6  # noqa: PLR2004 - as above
