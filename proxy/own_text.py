"""The client's own text in a raw body, a string or an array of parts: the echoed blocks in it, and where it ends.

An echoed block is found by its marker lines, in whatever spelling. It does not know what is put there, nor in which
field of which API the text stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from proxy import splice
from tfgrpo import library

_MARKER = library.BLOCK_START.encode()
_TEXT_PART = frozenset((b"type", b"text"))


class Text(msgspec.Struct, frozen=True):
    """A text of the client's.

    It holds the echoes in it, where text is added, and whether some text of the client's stands there already.
    """

    echoes: tuple[splice.Span, ...]
    at: int
    filled: bool
    is_array: bool


def may_echo(body: bytes) -> bool:
    """Whether a block may stand somewhere in the body: a quick look, before any text is read."""
    return splice.holds(body, _MARKER) or splice.spelled_with_escapes(body)


def find(body: bytes, value: int, *, echo: bool) -> Text | None:
    """Read the value at that offset; None when it is neither a string nor an array. `echo`: it may hold blocks."""
    if splice.is_string(body, value):
        return _string(body, value, echo=echo)
    return _array(body, value, echo=echo) if splice.is_array(body, value) else None


def prompt_blocks(body: bytes, value: int) -> tuple[splice.Span, ...]:
    """Return where the blocks in the string at `value` stand, those in front with the blank line after them."""
    found = splice.text(body, value)
    spans: list[splice.Span] = []
    front = 0
    for begin, end in library.spans(found):
        start, stop = max(begin, front), end
        if start == front:
            front = stop = end + 2 if found.startswith("\n\n", end) else end
        spans.append((start, stop))
    return _spelled(body, value, spans)


def _string(body: bytes, value: int, *, echo: bool) -> Text:
    stop = splice.end(body, value) - 1
    echoes = _blocks(body, value) if echo else ()
    return Text(echoes, stop, filled=_length(echoes) < stop - value - 1, is_array=False)


def _array(body: bytes, value: int, *, echo: bool) -> Text:
    """Read an array of parts.

    A text part that is nothing but an echo goes as a whole, with a comma: some upstreams refuse empty texts.
    """
    parts = [(start, splice.end(body, start)) for start in splice.elements(body, value)]
    if not echo:
        return Text((), parts[-1][1] if parts else value + 1, filled=bool(parts), is_array=True)
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
    return Text(tuple(echoes), value + 1 if kept is None else kept, filled=kept is not None, is_array=True)


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
    return _spelled(body, value, library.spans(splice.text(body, value)))


def _spelled(body: bytes, value: int, spans: Sequence[splice.Span]) -> tuple[splice.Span, ...]:
    """Return where spans of the decoded string at `value` stand in the body."""
    if not spans:
        return ()
    borders = splice.offsets(body, value, [border for span in spans for border in span])
    return tuple(zip(borders[::2], borders[1::2], strict=True))


def _length(spans: tuple[splice.Span, ...]) -> int:
    return sum(stop - start for start, stop in spans)
