"""A trajectory as a person reads it: what each exchange adds to the conversation, and what was sent upstream for it.

The request is recorded as the client sent it. What the proxy put into it follows from the version and the entries that
the trajectory was given, by the same functions that the live path uses. Pure: the store is read by whoever calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from proxy import injection, splice
from tfgrpo import dialects, library
from tfgrpo.types import Bodies, Choice, Exchange, Message, Request, Response

NOT_INJECTED: Final = "not injected"
"""How the notes of an exchange begin that got no block."""

MOST: Final = 1_000
"""Messages that a turn holds of those that it adds."""

SYSTEM: Final = ("system", "developer")

BlockOf = Callable[[Exchange], str]
"""The block that an exchange was given; "" for none."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a text; `ours`: the proxy put it there."""

    text: str
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """One message, cut where our block stands in it. `at`: its place among the request's messages, or the answers."""

    message: Message
    segments: tuple[Segment, ...]
    at: int
    answer: bool = False
    finish: str | None = None
    choice: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange. `asked` is what it adds, `more` how many messages that leaves out; `repeats` how many messages
    before it were sent again.

    `unreadable` says why there are no messages, None where they could be read.
    """

    exchange: Exchange
    asked: tuple[Said, ...] = ()
    answers: tuple[Said, ...] = ()
    more: int = 0
    repeats: int = 0
    unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request's bytes as they went upstream, cut where a block stands. `taken_out`: how many echoed ones were.

    `unreadable` says why a body is shown as it came, None where it could be read.
    """

    segments: tuple[tuple[bytes, bool], ...]
    taken_out: int = 0
    unreadable: str | None = None

    @property
    def body(self) -> bytes:
        """The whole of it."""
        return b"".join(piece for piece, _ in self.segments)

    @property
    def injected(self) -> bool:
        """Whether any of it is the proxy's."""
        return any(ours for _, ours in self.segments)


def turns(
    exchanges: Sequence[Exchange], bodies: Mapping[str, Bodies], block_of: BlockOf, *, known: Sequence[Message] = ()
) -> list[Turn]:
    """Return the turns of a trajectory, in order. `known`: the conversation before the first of them."""
    found = []
    so_far = list(known)
    for exchange in exchanges:
        kept, block = bodies.get(exchange.id), block_of(exchange)
        request = None if kept is None else request_of(exchange, kept, block)
        if kept is None or request is None:
            found.append(Turn(exchange, unreadable=why(exchange, kept)))
            continue
        repeats = _repeated(request.messages, so_far)
        new = request.messages[repeats:]
        asked = tuple(said(message, at, block) for at, message in enumerate(new[:MOST], repeats))
        answers = tuple(_answer(choice, at, exchange) for at, choice in enumerate(_choices(exchange, kept)))
        found.append(Turn(exchange, asked, answers, len(new) - len(asked), repeats))
        so_far = [*request.messages, *(one.message for one in answers[:1])]
    return found


def said_by(exchange: Exchange, kept: Bodies | None) -> tuple[Message, ...]:
    """Return the conversation at the end of an exchange, as far as it can be read."""
    request = None if kept is None else request_of(exchange, kept, "")
    answers = () if kept is None else _choices(exchange, kept)
    return (*(request.messages if request else ()), *(one.message for one in answers[:1]))


def request_of(exchange: Exchange, kept: Bodies, block: str) -> Request | None:
    """Return the request as the upstream read it; None where we cannot."""
    dialect = dialects.by_name(exchange.dialect)
    went = sent(exchange, kept, block)
    return None if dialect is None or went.unreadable is not None else dialect.read_request(went.body)


def response_of(exchange: Exchange, kept: Bodies) -> Response | None:
    """Return the answer; None where we cannot read it."""
    dialect = dialects.by_name(exchange.dialect)
    body = dialects.decoded(kept.response, kept.response_encoding)
    return None if dialect is None or body is None else dialect.read_response(body, kept.response_type)


def said(message: Message, at: int, block: str) -> Said:
    """Cut a message where exactly our block stands; what only looks like one is the client's text."""
    start = message.text.find(block) if block else -1
    if start < 0:
        return Said(message, (Segment(message.text),) if message.text else (), at)
    end = start + len(block)
    pieces = (Segment(message.text[:start]), Segment(block, ours=True), Segment(message.text[end:]))
    return Said(message, tuple(one for one in pieces if one.text), at)


def sent(exchange: Exchange, kept: Bodies, block: str) -> Sent:
    """Return the request as it went upstream."""
    body = dialects.decoded(kept.request, kept.request_encoding)
    if body is None:
        return Sent(((kept.request, False),), unreadable=f"its content-encoding is {kept.request_encoding[:40]!r}")
    if exchange.set is None or exchange.dialect is None or NOT_INJECTED in exchange.note:
        return Sent(((body, False),))
    # A set without a block still takes out blocks that the client sent back.
    spot = injection.find(body, exchange.dialect)
    edits = [] if isinstance(spot, str) else spot.edits(block)
    return Sent(tuple(_cut(body, edits)), sum(not new for _, _, new in edits))


def answered(kept: Bodies) -> bytes:
    """Return the answer as the upstream sent it, but for its content-encoding."""
    body = dialects.decoded(kept.response, kept.response_encoding)
    return kept.response if body is None else body


def _cut(body: bytes, edits: Sequence[splice.Edit]) -> Iterator[tuple[bytes, bool]]:
    position = 0
    for begin, stop, new in sorted(edits):
        yield body[position:begin], False
        if new:
            yield new, True
        position = stop
    yield body[position:], False


def _choices(exchange: Exchange, kept: Bodies) -> tuple[Choice, ...]:
    response = response_of(exchange, kept)
    return () if response is None else response.choices


def why(exchange: Exchange, kept: Bodies | None) -> str:
    """Say why there are no messages."""
    if kept is not None:
        return "it is of no API that is read here, or its body is not readable; see it as sent"
    return {
        "metadata": "only its metadata were recorded, no bodies (record: metadata)",
        "expired": "its bodies were deleted when they reached their age (retention)",
    }.get(exchange.record, "its bodies are not there: deleted, or not recorded yet")


def _repeated(asked: Sequence[Message], so_far: Sequence[Message]) -> int:
    """How many messages in front repeat the conversation so far; a system text may have changed in the meantime."""
    mine = [at for at, one in enumerate(asked) if one.role not in SYSTEM]
    known = [one for one in so_far if one.role not in SYSTEM]
    if not known or len(mine) < len(known):
        return 0
    same = all(_same(asked[left], right) for left, right in zip(mine, known, strict=False))
    return mine[len(known) - 1] + 1 if same else 0


def _same(one: Message, other: Message) -> bool:
    """Whether two messages are one, but for a block of ours and the white space around it."""
    return one == other or _plain(one) == _plain(other)


def _plain(message: Message) -> Message:
    return replace(message, text=library.strip(message.text).strip())


def _answer(choice: Choice, at: int, exchange: Exchange) -> Said:
    text = choice.message.text
    segments = (Segment(text),) if text else ()
    several = choice.index if exchange.choices > 1 else None
    return Said(choice.message, segments, at, answer=True, finish=choice.finish_reason, choice=several)
