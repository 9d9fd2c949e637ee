"""How much of a conversation a page shows: a client may have sent megabytes, or a hundred thousand messages.

Pure. Each text is cut to a length, and a page to a sum of lengths; what is left out is counted, for the page to say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.dashboard.conversation import Said, Segment, Turn
from proxy.dashboard.texts import laid_out

ROOM: Final = 200_000
"""Characters of messages on a page."""

LONGEST: Final = 8_000
"""Of one text."""

SHORTEST: Final = 400
"""What each text may have, however many there are."""

EACH: Final = 200
"""What a message or a call takes beside its text."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as far as it is shown."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as far as it is shown. `rest`: characters of its texts and calls that are not."""

    said: Said
    segments: tuple[Segment, ...]
    calls: tuple[Call, ...]
    rest: int


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn as far as it is shown. `left_out`: messages that are not."""

    turn: Turn
    messages: tuple[Shown, ...]
    left_out: int


class Room:
    """What is left of a page."""

    def __init__(self, characters: int = ROOM) -> None:
        self._left = characters

    def turns(self, turns: Sequence[Turn]) -> list[ShownTurn]:
        """Return the turns as far as they fit. Answers come before what was asked: there are few of them."""
        return [self._turn(one) for one in turns]

    def _turn(self, turn: Turn) -> ShownTurn:
        answers = tuple(self._messages(turn.answers))
        asked = tuple(self._messages(turn.asked))
        left_out = turn.more + len(turn.asked) + len(turn.answers) - len(asked) - len(answers)
        return ShownTurn(turn, asked + answers, left_out)

    def _messages(self, some: Iterable[Said]) -> Iterator[Shown]:
        for one in some:
            if self._left <= 0:
                return
            yield self._message(one)

    def _message(self, one: Said) -> Shown:
        self._left -= EACH
        segments = tuple(Segment(self._cut(piece.text), ours=piece.ours) for piece in one.segments)
        calls = []
        for call in one.message.tool_calls:
            if self._left <= 0:
                break
            self._left -= EACH
            calls.append(Call(self._cut(call.name), self._cut(laid_out(call.arguments))))
        whole = sum(len(piece.text) for piece in one.segments) - sum(len(piece.text) for piece in segments)
        kept = zip(one.message.tool_calls, calls, strict=False)
        whole += sum(max(len(laid_out(call.arguments)) - len(shown.arguments), 0) for call, shown in kept)
        whole += sum(len(call.arguments) for call in one.message.tool_calls[len(calls) :])
        return Shown(one, segments, tuple(calls), whole)

    def _cut(self, text: str) -> str:
        shown = text[: min(LONGEST, max(SHORTEST, self._left))]
        self._left -= len(shown)
        return shown
