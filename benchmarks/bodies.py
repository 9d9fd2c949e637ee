"""What is sent and what is answered: conversations of a given size, an answer of 1 KB, the events of a stream.

Each request differs from every other in its first user message, as those of different tasks do. It knows no proxy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

MARK: Final = b"~"
"""Stands once in each chunk of a stream and nowhere else, so that chunks can be counted however bytes are cut."""

_SYSTEM: Final = "You are the assistant of a warehouse. Answer briefly, and look up an order before you speak about it."
_TALK: Final = (
    'The customer writes: "where is my order?"\nThe tracker says:\n\tstatus = "in transit", city = "Lyon", '
    "weight = 12.5 kg; the last scan was two days ago, and no reason is given for the delay. "
)
_SMALLEST_MESSAGE: Final = 480
_MOST_MESSAGES: Final = 64
_MOST_TURNS: Final = 16
_TURN: Final = 4096
_PLACE: Final = b"order 00000000"
_SAID: Final = "word " * 150


class Requests:
    """Whole HTTP requests for a chat completion with a body of about `size` bytes.

    One of 1 KB is a task of its own. Larger ones are turns of conversations that grow as an agent's do: each has the
    answer to the one before, and what tools and a person said since, in messages of half a kilobyte and more. `key`:
    the credential; `headers`: lines that a target needs beside it.
    """

    def __init__(self, size: int, *, key: str, headers: tuple[str, ...] = (), stream: bool = False) -> None:
        fixed = [
            "POST /v1/chat/completions HTTP/1.1",
            "host: 127.0.0.1",
            "accept: */*",
            "user-agent: bench/1",
            "content-type: application/json",
            f"authorization: Bearer {key}",
            *headers,
        ]
        self._turns = [_split(fixed, body) for body in _conversation(size, stream=stream)]
        self._number = count(1)

    def conversations(self) -> Iterator[bytes]:
        """Yield the requests of one connection: conversation after conversation, for ever."""
        while True:
            number = next(self._number)
            for before, after in self._turns:
                yield b"%s%08d%s" % (before, number, after)


def _split(fixed: list[str], body: bytes) -> tuple[bytes, bytes]:
    """Return a request as what stands before and after the number of its order."""
    whole = "\r\n".join([*fixed, f"content-length: {len(body)}"]).encode() + b"\r\n\r\n" + body
    before, place, after = whole.partition(_PLACE)
    return before + place[:-8], after


def _conversation(size: int, *, stream: bool) -> list[bytes]:
    """Return the bodies of a conversation's turns, `size` bytes on average."""
    turns = max(1, min(_MOST_TURNS, size // _TURN))
    each = max(_SMALLEST_MESSAGE, size // _MOST_MESSAGES)
    asked: dict[str, Any] = {
        "model": "bench",
        "messages": [],
        "temperature": 0.2,
        **({"stream": True} if stream else {}),
    }
    messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": f"About {_PLACE.decode()}: "}]
    bodies = []
    for number in range(turns):
        # Half the size at first and half as much again at the end: `size` on average.
        goal = size if turns == 1 else size // 2 + number * size // (turns - 1)
        messages += [{"role": "assistant", "content": _SAID}] if number else []
        while (missing := goal - len(_encoded({**asked, "messages": messages}))) > _SMALLEST_MESSAGE // 4:
            messages += [{"role": "user", "content": (_TALK * (each // len(_TALK) + 1))[: min(each, missing)]}]
        bodies.append(_encoded({**asked, "messages": messages}))
    return bodies


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def answer(number: int) -> bytes:
    """Return a whole answer of 1 KB, head included."""
    return _ANSWER % number


class Events:
    """The chunks of one stream, framed. No two are the same: LiteLLM's proxy takes a hundred alike for a loop."""

    def __init__(self, stream: int) -> None:
        text = " %06d words" + MARK.decode()
        data = _event(stream, {"content": text}, None)
        self._chunk = _framed(data, spare=len(text) - len(text % 0))
        end = data + _event(stream, {}, "stop") + b"data: [DONE]\n\n"
        self._last = _framed(end, spare=len(text) - len(text % 0)) + b"0\r\n\r\n"

    def chunk(self, number: int) -> bytes:
        """Return one chunk."""
        return self._chunk % number

    def last(self, number: int) -> bytes:
        """Return the last chunk with the end of the stream."""
        return self._last % number


STREAM_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _event(stream: int, delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    said = {
        "id": f"chatcmpl-{stream:012d}",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "bench",
        "choices": [choice],
    }
    return b"data: " + json.dumps(said, separators=(",", ":")).encode() + b"\n\n"


def _framed(data: bytes, *, spare: int) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data) - spare, data)


def _whole_answer() -> bytes:
    said = {
        "id": "chatcmpl-%012d",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": _SAID}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 150, "total_tokens": 350},
    }
    body = json.dumps(said).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body % 1)}\r\n\r\n"
    return head.encode() + body


_ANSWER: Final = _whole_answer()
