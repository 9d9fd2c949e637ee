"""Upstreams for tests: a scriptable one over raw TCP, and a chat server that answers with what it was sent.

`RawUpstream` keeps every byte it received and plays back a script: exact bytes, a held line, a reset. It serves each
connection in a thread, so that a test may block while it runs.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Self

PATIENCE = 40.0
"""Seconds after which a test that waits has failed."""

Step = bytes | threading.Event | Literal["close", "reset", "hold"]
"""Bytes are sent, an event is waited for; `hold` waits for the peer to close, `close` and `reset` end the line."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived: the raw head, and the body without chunked framing."""

    head: bytes
    body: bytes
    connection: int
    chunks: tuple[bytes, ...] = ()
    at: float = field(default_factory=time.monotonic)

    @property
    def line(self) -> str:
        return self.head.split(b"\r\n")[0].decode("latin-1")

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        lines = self.head.split(b"\r\n")[1:]
        return [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines)]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode("latin-1") for name, value in self.raw_headers}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Script = Callable[[Seen], Iterable[Step]]


class RawUpstream:
    """Listens on a free port of 127.0.0.1. `reads_body` False: it answers when it has the head alone."""

    def __init__(self, script: Script, *, reads_body: bool = True, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.seen: list[Seen] = []
        self.closed_at: list[float] = []
        """When peers closed a line that was held, on the clock of `time.monotonic`."""
        self.connections = 0
        self._script = script
        self._reads_body = reads_body
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def base_url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for line in list(self._open):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)

    def wait_seen(self, count: int = 1) -> Seen:
        """Return the request that makes `count`, once it is here."""
        self._wait(lambda: len(self.seen) >= count, f"{count} requests")
        return self.seen[count - 1]

    def wait_closed(self) -> float:
        """Return when the first peer closed a held line, once it did."""
        self._wait(lambda: bool(self.closed_at), "the peer's close")
        return self.closed_at[0]

    def wait_until_closed(self, count: int) -> None:
        """Return once the peers have closed so many held lines."""
        self._wait(lambda: len(self.closed_at) >= count, f"{count} closes")

    def _wait(self, there: Callable[[], bool], what: str) -> None:
        with self._changed:
            assert self._changed.wait_for(there, PATIENCE), f"{what} did not come"

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            # Each piece leaves at once, and is not held back until the last one was acknowledged.
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(line, self.connections), daemon=True)
            self._threads.append(thread)
            self._open.add(line)
            thread.start()

    def _serve(self, line: socket.socket, number: int) -> None:
        if self._tls is not None:
            with suppress(OSError):
                line = self._tls.wrap_socket(line, server_side=True)
        stream = line.makefile("rb")
        with suppress(OSError), line, stream:
            while (seen := self._read(stream, number)) is not None:
                with self._changed:
                    self.seen.append(seen)
                    self._changed.notify_all()
                if not self._play(line, self._script(seen)):
                    break
        self._open.discard(line)

    def _read(self, stream: Any, number: int) -> Seen | None:
        lines = []
        while (line := stream.readline()) not in (b"\r\n", b""):
            lines.append(line.rstrip(b"\r\n"))
        if not lines:
            return None
        seen = Seen(b"\r\n".join(lines), b"", number)
        if not self._reads_body:
            return seen
        if "chunked" in seen.headers.get("transfer-encoding", ""):
            chunks = tuple(chunks_of(stream))
            return Seen(seen.head, b"".join(chunks), number, chunks)
        return Seen(seen.head, stream.read(int(seen.headers.get("content-length", "0"))), number)

    def _play(self, line: socket.socket, steps: Iterable[Step]) -> bool:
        """Play a script; False when the connection ended with it."""
        for step in steps:
            if isinstance(step, bytes):
                line.sendall(step)
            elif isinstance(step, threading.Event):
                assert step.wait(PATIENCE)
            elif step == "hold":
                self._hold(line)
                return False
            else:
                if step == "reset":
                    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
        return True

    def _hold(self, line: socket.socket) -> None:
        line.settimeout(PATIENCE)
        with suppress(ConnectionError):
            while line.recv(65536):
                pass
        with self._changed:
            self.closed_at.append(time.monotonic())
            self._changed.notify_all()


def answer(
    body: bytes | str | dict[str, Any],
    *,
    status: int = 200,
    headers: Iterable[tuple[str, str]] = (),
    content_type: str = "application/json",
) -> bytes:
    """A whole response with a content-length."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    head = [f"HTTP/1.1 {status} Said", f"Content-Type: {content_type}", f"Content-Length: {len(raw)}"]
    head += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + raw


def chunked_head(content_type: str = "text/event-stream", status: int = 200, extra: str = "") -> bytes:
    """The head of a response whose body comes in chunks."""
    return f"HTTP/1.1 {status} OK\r\nContent-Type: {content_type}\r\n{extra}Transfer-Encoding: chunked\r\n\r\n".encode()


def chunk(piece: bytes) -> bytes:
    """One chunk; an empty one ends the body."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def event(data: dict[str, Any] | str) -> bytes:
    """One server-sent event."""
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def completion(content: str = "hello", *, id_: str = "chatcmpl-1", n: int = 1, model: str = "m") -> dict[str, Any]:
    """A chat completion."""
    choice = {"finish_reason": "stop", "logprobs": None}
    return {
        "id": id_,
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [
            {"index": k, "message": {"role": "assistant", "content": content, "refusal": None}, **choice}
            for k in range(n)
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }


def deltas(content: str, *, id_: str = "chatcmpl-1", n: int = 1) -> list[bytes]:
    """The events of a streamed chat completion, one word each, choices interleaved, without the end."""
    frame = {"id": id_, "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}
    sent: list[tuple[int, dict[str, str], str | None]]
    sent = [(k, {"role": "assistant", "content": ""}, None) for k in range(n)]
    sent += [(k, {"content": word}, None) for word in content.split(" ") for k in range(n)]
    sent += [(k, {}, "stop") for k in range(n)]
    return [event({**frame, "choices": [{"index": k, "delta": delta, "finish_reason": end}]}) for k, delta, end in sent]


def streamed(content: str, **kwargs: Any) -> list[Step]:
    """A whole streamed chat completion."""
    events = [*deltas(content, **kwargs), event("[DONE]")]
    return [chunked_head(), *(chunk(one) for one in events), chunk(b"")]


def chat(seen: Seen) -> Iterator[Step]:
    """A chat server's script: it answers with the texts of its system and user messages, as JSON.

    Knows `stream`, `n` and `tools` (it calls the first one), and refuses a model called `missing`.
    """
    asked = seen.json
    if asked.get("model") == "missing":
        said = {"message": "no such model", "type": "invalid_request_error", "param": None, "code": "model_not_found"}
        yield answer({"error": said}, status=404, headers=[("x-request-id", "req-7")])
        return
    texts = {role: [m["content"] for m in asked["messages"] if m["role"] == role] for role in ("system", "user")}
    said_text = json.dumps(texts)
    id_ = f"chatcmpl-{seen.connection}-{int(seen.at * 1e6)}"
    if asked.get("stream"):
        yield from streamed(said_text, n=asked.get("n", 1), id_=id_)
        return
    whole = completion(said_text, n=asked.get("n", 1), id_=id_)
    if asked.get("tools"):
        called = {"name": asked["tools"][0]["function"]["name"], "arguments": '{"big": 2512292042121000001}'}
        message = whole["choices"][0]["message"]
        message.update(content=None, tool_calls=[{"id": "call_1", "type": "function", "function": called}])
        whole["choices"][0]["finish_reason"] = "tool_calls"
    yield answer(whole, headers=[("x-request-id", "req-1")])


def chunks_of(stream: Any) -> Iterator[bytes]:
    """Read the chunks of a body."""
    while size := int(stream.readline() or b"0", 16):
        yield stream.read(size)
        stream.readline()
    stream.readline()
