"""Server-sent events of a recorded stream (WHATWG HTML, section 9.2.6), read at once: the copy is complete."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*(?:(?:data|event|id|retry)?:|data[\r\n])")


def is_stream(body: bytes, content_type: str) -> bool:
    """Whether an answer is a stream of events: by its type, or where it names none by how it begins."""
    return "event-stream" in content_type.lower() or (not content_type and looks_like_events(body))


def looks_like_events(body: bytes) -> bool:
    """Whether the body begins as a stream of events does: for an answer that names no content type."""
    return _FIRST_LINE.match(body) is not None


def data(body: bytes) -> Iterator[bytes]:
    """Yield the data of each event. Lines end with LF, CRLF or CR; comments and other fields are passed over.

    A last event that no blank line ends is yielded too: servers close without one.
    """
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    body = body.removeprefix(b"\xef\xbb\xbf")
    for event in body.split(b"\n\n"):
        if event.startswith(b"data:") and b"\n" not in event:
            yield event[5:].removeprefix(b" ")
            continue
        lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
        if lines:
            yield b"\n".join(lines)
