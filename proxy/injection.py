"""May a request be changed, and where does the block of experiences go? Pure: bytes in, bytes out.

The block goes after the client's own text of the first message when that is a system or developer message, else into a
new system message in front. Roles, order and every byte around stay as they are. A block that the client echoes, in
whatever spelling, is taken out of all system and developer messages before the current one is put in, so that blocks
are never stacked. What the upstream would refuse anyway (no messages, a first message without text) is left alone: the
client gets the upstream's own answer to its mistake.

It does not know which block a request gets, nor why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from proxy import splice
from tfgrpo import library

_SYSTEM = ("system", "developer")
_TEXT_PART = frozenset((b"type", b"text"))
_MARKER = library.BLOCK_START.encode()


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the block goes in a body that can be changed: one reading serves any block.

    `echoes` are the spans of blocks that the client sent back, `at` is where the new one goes, with `before` and
    `after` around it.
    """

    body: bytes
    echoes: tuple[splice.Span, ...]
    at: int
    before: bytes
    after: bytes

    def inject(self, block: str) -> bytes:
        """Return the body with `block` in it.

        With "" only echoes are taken out; a body without any is returned as it is.
        """
        edits = [(start, stop, b"") for start, stop in self.echoes]
        if block:
            edits.append((self.at, self.at, self.before + _escaped(block) + self.after))
        return splice.edit(self.body, edits)


def find(body: bytes, dialect: str, content_encoding: str = "") -> Spot | str:
    """Return where the block goes, or in a few words why this request cannot be changed."""
    if dialect != "chat":
        return f"nothing is injected into requests of the API {dialect!r}"
    if content_encoding.strip().lower() not in ("", "identity"):
        return f"the body has the content-encoding {content_encoding.strip()!r}"
    reason = splice.unreadable(body)
    if reason is not None:
        return reason
    messages = splice.top(body, b"messages")
    if messages is None or not splice.is_array(body, messages):
        return "the body has no array of messages"
    first = next(splice.elements(body, messages), None)
    if first is None or not splice.is_object(body, first):
        return "the body has no first message"
    return _find(body, messages, first)


def inject(body: bytes, dialect: str, block: str) -> bytes | None:
    """Return the body with `block` in it, None when it cannot be changed; see `Spot.inject`."""
    spot = find(body, dialect)
    return None if isinstance(spot, str) else spot.inject(block)


def injectable(body: bytes, dialect: str, content_encoding: str) -> str | None:
    """Return None when the request can be changed, else why not."""
    spot = find(body, dialect, content_encoding)
    return spot if isinstance(spot, str) else None


def replace_model(body: bytes, model: str) -> bytes | None:
    """Return the body with another value of `model`, None when it has none that is a string."""
    if splice.unreadable(body) is not None:
        return None
    value = splice.top(body, b"model")
    if value is None or not splice.is_string(body, value):
        return None
    return splice.edit(body, [(value, splice.end(body, value), splice.quoted(model))])


@dataclass(frozen=True, slots=True)
class _Content:
    """A message's content.

    It holds the echoes in it, where text is added, and whether some text of the client's stands there already.
    """

    echoes: tuple[splice.Span, ...]
    at: int
    filled: bool
    is_array: bool


def _find(body: bytes, messages: int, first: int) -> Spot | str:
    echo = _MARKER in body or splice.spelled_with_escapes(body)
    echoes = _echoes(body, messages) if echo else ()
    head = dict(splice.members(body, first))
    if not _is_system(body, head):
        return Spot(body, echoes, first, b'{"role":"system","content":"', b'"},')
    content = _content(body, head, echo=echo)
    if content is None:
        return "the first message has no text to add to"
    if content.is_array:
        comma = b"," if content.filled else b""
        return Spot(body, echoes, content.at, comma + b'{"type":"text","text":"', b'"}')
    return Spot(body, echoes, content.at, b"\\n\\n" if content.filled else b"", b"")


def _echoes(body: bytes, messages: int) -> tuple[splice.Span, ...]:
    found: list[splice.Span] = []
    for message in splice.elements(body, messages):
        if not splice.is_object(body, message):
            continue
        fields = dict(splice.members(body, message))
        content = _content(body, fields, echo=True) if _is_system(body, fields) else None
        found += content.echoes if content is not None else ()
    return tuple(found)


def _is_system(body: bytes, fields: Mapping[bytes, int]) -> bool:
    role = fields.get(b"role")
    return role is not None and splice.is_string(body, role) and splice.text(body, role) in _SYSTEM


def _content(body: bytes, fields: Mapping[bytes, int], *, echo: bool) -> _Content | None:
    """Read a message's content; None when it is neither a string nor an array. `echo`: it may hold echoed blocks."""
    value = fields.get(b"content")
    if value is None:
        return None
    if splice.is_string(body, value):
        return _string(body, value, echo=echo)
    return _array(body, value, echo=echo) if splice.is_array(body, value) else None


def _string(body: bytes, value: int, *, echo: bool) -> _Content:
    stop = splice.end(body, value) - 1
    echoes = _blocks(body, value) if echo else ()
    return _Content(echoes, stop, filled=_length(echoes) < stop - value - 1, is_array=False)


def _array(body: bytes, value: int, *, echo: bool) -> _Content:
    """Read an array of parts.

    A text part that is nothing but an echo goes as a whole, with a comma: some upstreams refuse empty texts.
    """
    parts = [(start, splice.end(body, start)) for start in splice.elements(body, value)]
    if not echo:
        return _Content((), parts[-1][1] if parts else value + 1, filled=bool(parts), is_array=True)
    echoes: list[splice.Span] = []
    kept: int | None = None
    for number, (start, stop) in enumerate(parts):
        blocks, whole = _part(body, start)
        if not whole:
            echoes += blocks
            kept = stop
        elif kept is not None:
            echoes.append((parts[number - 1][1], stop))
        else:
            echoes.append((start, parts[number + 1][0] if number + 1 < len(parts) else stop))
    return _Content(tuple(echoes), value + 1 if kept is None else kept, filled=kept is not None, is_array=True)


def _part(body: bytes, part: int) -> tuple[tuple[splice.Span, ...], bool]:
    """Return the echoes in a part's text, and whether the part is nothing else."""
    fields = dict(splice.members(body, part)) if splice.is_object(body, part) else {}
    text = fields.get(b"text")
    if text is None or not splice.is_string(body, text):
        return (), False
    blocks = _blocks(body, text)
    bare = fields.keys() <= _TEXT_PART and _length(blocks) == splice.end(body, text) - text - 2
    return blocks, bool(blocks) and bare


def _blocks(body: bytes, value: int) -> tuple[splice.Span, ...]:
    """Return where the blocks in the string at `value` stand in the body."""
    spans = library.spans(splice.text(body, value))
    if not spans:
        return ()
    borders = splice.offsets(body, value, [border for span in spans for border in span])
    return tuple(zip(borders[::2], borders[1::2], strict=True))


def _length(spans: tuple[splice.Span, ...]) -> int:
    return sum(stop - start for start, stop in spans)


# A handful of blocks serve all traffic, and spelling one out costs more than all else for a small body.
@lru_cache(maxsize=64)
def _escaped(block: str) -> bytes:
    return splice.quoted(block)[1:-1]
