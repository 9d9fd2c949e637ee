"""How upstreams answer in the field, well and badly: named scripts for `RawUpstream`, to be parametrised over.

Each mode says what the record must tell of it, where the promise defines that. Modes that need time (silence, a slow
first byte) or memory of earlier requests stand with the tests that use them. Servers that are strict are scripts.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import brotli
import zstandard

from tests.upstreams import Seen, Step, answer, chunk, chunked_head, completion, deltas, event, streamed
from tfgrpo.types import Outcome

SMILE: Final = "a \U0001f600 b"


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to answer a chat request. `text`: the assembled answer, None where there is none to be read."""

    steps: tuple[Step, ...]
    outcome: Outcome = "complete"
    text: str | None = None


ENCODERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}

_DONE: Final = event("[DONE]")
_MOST_MARKS: Final = 4
_USAGE: Final = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_CONTENT_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_REFUSED: Final = b'{"error":{"message":"top_p \\u00e9","code":400, "code": 401}}'


def events(*pieces: bytes) -> tuple[Step, ...]:
    """A stream of these pieces, each a chunk of its own, with a sound end."""
    return (chunked_head(), *(chunk(piece) for piece in pieces), chunk(b""))


def cut(whole: bytes, at: int) -> tuple[Step, ...]:
    """A stream that comes in two writes and two chunks, cut at an offset."""
    return events(*(piece for piece in (whole[:at], whole[at:]) if piece))


def delta(*choices: tuple[int, dict[str, Any], str | None], **more: Any) -> bytes:
    """One event of a streamed chat completion."""
    listed = [{"index": index, "delta": said, "finish_reason": end} for index, said, end in choices]
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": listed, **more})


def plain_stream(text: str = SMILE, end: str = "\n") -> bytes:
    """A whole streamed answer as it stands on the wire, unescaped, with line ends of a kind."""
    frames = [{"role": "assistant"}, *({"content": one} for one in text)]
    lines = [json.dumps({"choices": [{"index": 0, "delta": one}]}, ensure_ascii=False) for one in frames]
    lines.append('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')
    return "".join(f"data: {line}{end}{end}" for line in [*lines, "[DONE]"]).encode()


def _called(index: int | None, **function: str) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    named = {"id": f"call_{function['name']}"} if "name" in function else {}
    return {"tool_calls": [{**place, **named, "function": function}]}


def _compressed() -> Iterator[tuple[str, Mode]]:
    for name, pack in ENCODERS.items():
        said = [("content-encoding", name)]
        yield f"{name} on 200", Mode((answer(pack(json.dumps(completion()).encode()), headers=said),), text="hello")
        yield f"{name} on 400", Mode((answer(pack(_REFUSED), status=400, headers=said),), "failed")
        packed = pack(plain_stream())
        head = chunked_head(extra=f"Content-Encoding: {name}\r\n")
        yield (
            f"{name} stream",
            Mode((head, *(chunk(packed[i : i + 7]) for i in range(0, len(packed), 7)), chunk(b"")), text=SMILE),
        )


_ERRORS: Final = (400, 401, 404, 408, 409, 413, 422, 429, 500, 503, 504, 529)
_HINTS: Final = [("retry-after", "30"), ("retry-after-ms", "7"), ("x-should-retry", "false"), ("x-request-id", "r-1"),
                 ("x-ratelimit-remaining-requests", "0")]  # fmt: skip

MODES: Final[dict[str, Mode]] = {
    "plain JSON": Mode((answer(completion()),), text="hello"),
    "stream": Mode(tuple(streamed("hi there")), text="hithere"),
    "stream, bare CR": Mode(events(plain_stream(end="\r")), text=SMILE),
    "stream, CRLF byte by byte": Mode(events(*(bytes([one]) for one in plain_stream(end="\r\n"))), text=SMILE),
    "comments and empty data": Mode(
        events(b": PROCESSING\n\n", b"id: 1\n: ping\n\n", b"data:\n\n", *deltas("hi"), _DONE), text="hi"
    ),
    "no space after the colon": Mode(events(plain_stream("hi").replace(b"data: ", b"data:")), text="hi"),
    "usage without choices": Mode(events(*deltas("hi"), delta(usage=_USAGE), _DONE), text="hi"),
    "usage, no key of choices": Mode(events(*deltas("hi"), event({"usage": _USAGE}), _DONE), text="hi"),
    "usage on the last chunk": Mode(
        events(delta((0, {"content": "hi"}, None)), delta((0, {}, "stop"), usage=_USAGE), _DONE), text="hi"
    ),
    "no choices in any chunk": Mode(events(event({"id": "c"}), event({"id": "c"}), _DONE), "broken"),
    "content in parts": Mode(
        events(
            delta((0, {"content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]}, None)),
            delta((0, {}, "stop")),
            _DONE,
        ),
    ),
    "no [DONE], all finished": Mode(events(*deltas("hi")), text="hi"),
    "no [DONE], clean end": Mode(events(delta((0, {"content": "hal"}, None))), "broken"),
    "no last chunk": Mode((chunked_head(), chunk(deltas("hi")[0]), "close"), "broken"),
    "reset in mid-stream": Mode((chunked_head(), chunk(deltas("hi")[0]), "reset"), "broken"),
    "shorter than its length": Mode((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour", "close"), "broken"),
    "ends with the connection": Mode((_CONTENT_HEAD + plain_stream("hi"), "close"), text="hi"),
    "error in the first event": Mode(events(event({"error": {"message": "queue full"}}), _DONE), "broken"),
    "error in the third event": Mode(
        events(*deltas("hi")[:2], event({"error": {"message": "queue full"}}), _DONE), "broken"
    ),
    "parallel tools, interleaved": Mode(
        events(
            delta((0, _called(0, name="x", arguments=""), None)),
            delta((0, _called(1, name="y", arguments=""), None)),
            *(delta((0, _called(k, arguments=piece), None)) for piece in ("{", "}") for k in (0, 1)),
            delta((0, {}, "tool_calls")),
            _DONE,
        ),
    ),
    "a tool without index": Mode(
        events(delta((0, _called(None, name="x", arguments="{}"), None)), delta((0, {}, "tool_calls")), _DONE)
    ),
    "n of 2, interleaved": Mode(tuple(streamed("a b", n=2)), text="ab"),
    "logprobs": Mode(
        events(
            event(
                {"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"logprob": -1e-9}]}}]}
            ),
            delta((0, {}, "stop")),
            _DONE,
        ),
        text="a",
    ),
    "halves of a surrogate": Mode(
        events(
            delta((0, {"content": "\ud83d"}, None)),
            delta((0, {"content": "\ude00"}, None)),
            delta((0, {}, "stop")),
            _DONE,
        ),
        text="\U0001f600",
    ),
    "a lone surrogate": Mode((answer(completion("\ud83d")),)),
    "big integers": Mode((answer(completion() | {"big": 2512292042121000001}),), text="hello"),
    "no JSON": Mode((answer(b"<html>", content_type="text/html"),)),
    "bad gateway in HTML": Mode((answer(b"<html>Bad", status=502, content_type="text/html"),), "failed"),
    **{f"status {code}": Mode((answer(_REFUSED, status=code, headers=_HINTS),), "failed") for code in _ERRORS},
    **dict(_compressed()),
}
"""Every mode by its name."""


def strict_template(seen: Seen) -> Iterator[Step]:
    """A chat server whose template takes one system message, in front, as those of open models do."""
    roles = [message["role"] for message in seen.json["messages"]]
    late = any(role in ("system", "developer") for role in roles[1:])
    yield _refusal("System message must be at the beginning.") if late else answer(completion())


def strict_messages(seen: Seen) -> Iterator[Step]:
    """A server of `/v1/messages` that takes no empty text, and four marks for its cache."""
    asked = seen.json
    system = asked.get("system", "")
    blocks = list(system) if isinstance(system, list) else []
    for message in asked["messages"]:
        blocks += message["content"] if isinstance(message["content"], list) else []
    marked = sum("cache_control" in block for block in [*blocks, *asked.get("tools", [])])
    if not isinstance(system, str | list):
        yield _refusal("system: Input should be a valid list")
    elif any(block.get("text") == "" for block in blocks):
        yield _refusal("text content blocks must be non-empty")
    elif marked > _MOST_MARKS:
        yield _refusal(f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided. Found {marked}.")
    else:
        yield answer({"id": "msg_1", "type": "message", "role": "assistant", "content": []})


def _refusal(message: str) -> bytes:
    return answer({"error": {"message": message, "type": "invalid_request_error"}}, status=400)
