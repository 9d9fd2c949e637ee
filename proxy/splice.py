"""Find where a value stands in raw JSON, and put bytes there; every other byte stays as it came.

Whether a body is JSON at all is decided by one strict parser, before (`unreadable`): msgspec checks it without building
anything, 80 microseconds for 256 KB. Only what it refuses gets a second opinion by `json`, which knows that a lone
surrogate escape is valid JSON. After that, finding a value takes brackets and strings alone, so the scanner is a few
regular expressions: it is linear, it does not recurse, and it never looks at how a number is spelled. Offsets mean
something only in a body that `unreadable` passed; in any other the functions raise ValueError or IndexError.

It knows nothing of what the values mean.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

Span = tuple[int, int]
Edit = tuple[int, int, bytes]
"""Where the old bytes begin and end, and the new ones."""

_QUOTE, _BACKSLASH, _OBJECT, _ARRAY, _ARRAY_END = b'"\\{[]'

_STRING_SOURCE = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRING = re.compile(_STRING_SOURCE, re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\r\n,\]}]++")
_GAP = re.compile(rb"[ \t\r\n,]*+")
_KEY = re.compile(rb"[ \t\r\n,]*+(" + _STRING_SOURCE + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:' + _STRING_SOURCE + rb'[^"\[\]{}]*+)*+[\[\]{}]', re.DOTALL)
_ASCII_ESCAPE = re.compile(rb"\\u00[2-7]")
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)


class _AnyObject(msgspec.Struct):
    """Takes any object and keeps nothing of it."""


_CHECKER = msgspec.json.Decoder(_AnyObject)


def unreadable(body: bytes) -> str | None:
    """Return None when `body` is one JSON object in UTF-8, else why it is not one.

    A byte order mark, NaN, or nesting of more than some hundred levels is no JSON here.
    """
    try:
        if not body.isascii():
            body.decode()
        _CHECKER.decode(body)
    except UnicodeDecodeError:
        return "the body is not UTF-8"
    except RecursionError:
        return "the body is nested too deeply"
    except msgspec.DecodeError:
        return _second_opinion(body)
    return None


def start(body: bytes) -> int:
    """Return the offset of the body's own object."""
    return _past(_GAP, body, 0)


def mentions(body: bytes, name: bytes) -> bool:
    """Whether a member of that name can be anywhere in the body: much quicker than to look for one that is not."""
    return holds(body, b'"' + name + b'"') or spelled_with_escapes(body)


def holds(body: bytes, some: bytes, position: int = 0) -> bool:
    """Whether these few bytes stand anywhere from there on.

    Looked for from behind, which over a long body takes half of the time that `in` does.
    """
    return body.rfind(some, position) >= 0


def top(body: bytes, name: bytes, *, plain: bool = False) -> int | None:
    """Return the offset of the value of the body's own member `name`; of several the last counts.

    It stops reading as soon as no later member can have that name. `plain`: the body is known to spell no printable
    ASCII with escapes, which is half of what that takes to find out.
    """
    found = last = None
    for key, value in members(body, start(body)):
        if key != name:
            continue
        found = value
        # Once, not for each doublet: a body of nothing but doublets must not cost the square of its length.
        last = _last_mention(body, name, value, plain=plain) if last is None else last
        if value > last:
            break
    return found


def members(body: bytes, at: int) -> Iterator[tuple[bytes, int]]:
    """Yield name and offset of the value of each member of the object at `at`; doublets come as they stand."""
    position = at + 1
    while key := _KEY.match(body, position):
        value = key.end()
        yield _name(key[1]), value
        position = end(body, value)


def elements(body: bytes, at: int) -> Iterator[int]:
    """Yield the offset of each element of the array at `at`."""
    position = _past(_GAP, body, at + 1)
    while body[position] != _ARRAY_END:
        yield position
        position = _past(_GAP, body, end(body, position))


def end(body: bytes, value: int) -> int:
    """Return the offset just after the value that begins at `value`."""
    first = body[value]
    if first == _QUOTE:
        close = body.find(b'"', value + 1)
        # Jumping to the next quote is many times faster than the expression, which is for escaped quotes.
        return close + 1 if body[close - 1] != _BACKSLASH else _past(_STRING, body, value)
    if first in (_OBJECT, _ARRAY):
        return _container_end(body, value)
    return _past(_SCALAR, body, value)


def is_string(body: bytes, value: int) -> bool:
    """Whether the value at that offset is a string."""
    return body[value] == _QUOTE


def is_null(body: bytes, value: int) -> bool:
    """Whether the value at that offset is null."""
    return body.startswith(b"null", value)


def is_array(body: bytes, value: int) -> bool:
    """Whether the value at that offset is an array."""
    return body[value] == _ARRAY


def is_object(body: bytes, value: int) -> bool:
    """Whether the value at that offset is an object."""
    return body[value] == _OBJECT


def text(body: bytes, value: int) -> str:
    """Return the string at `value`, lone surrogates kept."""
    return _text(body[value : end(body, value)])


def offsets(body: bytes, value: int, characters: Sequence[int]) -> list[int]:
    """Return where characters of the string at `value` stand in the body, given by ascending index into its `text`."""
    raw = body[value + 1 : end(body, value) - 1].decode()
    decoded, spelled = [0], [0]
    for escape in _ESCAPE.finditer(raw):
        decoded.append(decoded[-1] + escape.start() - spelled[-1] + 1)
        spelled.append(escape.end())
    found: list[int] = []
    position, before = value + 1, 0
    for character in characters:
        nearest = bisect_right(decoded, character) - 1
        here = spelled[nearest] + character - decoded[nearest]
        position += len(raw[before:here].encode())
        before = here
        found.append(position)
    return found


def quoted(value: str) -> bytes:
    """Return `value` as a JSON string in ASCII, which is valid in whatever surrounds it."""
    return json.dumps(value).encode("ascii")


def edit(body: bytes, edits: Iterable[Edit]) -> bytes:
    """Return `body` with the edits made, which must not overlap; without any, the same object."""
    pieces: list[bytes] = []
    position = 0
    for begin, stop, new in sorted(edits):
        pieces += (body[position:begin], new)
        position = stop
    return b"".join((*pieces, body[position:])) if pieces else body


def spelled_with_escapes(body: bytes, position: int = 0) -> bool:
    r"""Whether printable ASCII may be spelled as `\u00XX` from there on; a search for plain text then fails."""
    # Most bodies lack what both this and an escape beyond ASCII begin with.
    return holds(body, b"\\u00", position) and _ASCII_ESCAPE.search(body, position) is not None


def _second_opinion(body: bytes) -> str | None:
    """Judge again what msgspec refuses. Numbers are not made: long ones cost time that grows with their square."""
    try:
        found = json.loads(body.decode(), parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    except RecursionError:
        return "the body is nested too deeply"
    except ValueError:
        return "the body is not JSON"
    return None if isinstance(found, dict) else "the body is not a JSON object"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _last_mention(body: bytes, name: bytes, position: int, *, plain: bool) -> int:
    """Return an offset behind which no member has that name, looking from `position` on."""
    escaped = not plain and spelled_with_escapes(body, position)
    return len(body) if escaped else body.rfind(b'"' + name + b'"', position)


def _name(raw: bytes) -> bytes:
    return raw[1:-1] if b"\\" not in raw else _text(raw).encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    if b"\\" not in raw:
        return raw[1:-1].decode()
    found: str = json.loads(raw.decode())
    return found


def _container_end(body: bytes, value: int) -> int:
    depth, position = 0, value
    while True:
        position = _past(_BRACKET, body, position)
        # "[" and "{" are 0x5B and 0x7B, their partners two further: bit 2 tells them apart.
        depth += 1 if body[position - 1] & 4 == 0 else -1
        if depth == 0:
            return position


def _past(pattern: re.Pattern[bytes], body: bytes, position: int) -> int:
    found = pattern.match(body, position)
    if found is None:
        raise ValueError(f"not JSON at byte {position}")
    return found.end()
