"""A client for tests that sends exact bytes and reads what comes."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import BinaryIO

from tests.upstreams import PATIENCE, chunks_of

ODD_BODY = (
    b'{ "model":"m","messages":[{"role":"user","content":"\\ud83d"}],"x":1e400,"x":0.10,"big":25122920421210000010 }'
)
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer with its headers as they came, names in lower case, and its body without framing."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def raw(port: int, sent: bytes) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    line.sendall(sent)
    return line


def posted(port: int, body: bytes = BODY) -> socket.socket:
    return raw(port, f"{HEAD}content-length: {len(body)}\r\n\r\n".encode() + body)


def read_until(line: socket.socket, wanted: bytes) -> bytes:
    got = b""
    while wanted not in got:
        piece = line.recv(65536)
        assert piece, got
        got += piece
    return got


def asked(port: int, sent: bytes) -> RawAnswer:
    """Send one request and read its answer, as RFC 9112, 6.3 finds its end."""
    with raw(port, sent) as line, line.makefile("rb") as stream:
        status, headers = _head(stream)
        while status < 200:
            status, headers = _head(stream)
        fields = dict(headers)
        if sent.startswith(b"HEAD ") or status in (204, 304):
            body = b""
        elif b"chunked" in fields.get(b"transfer-encoding", b""):
            body = b"".join(chunks_of(stream))
        elif b"content-length" in fields:
            body = stream.read(int(fields[b"content-length"]))
        else:
            body = stream.read()
        return RawAnswer(status, headers, body)


def _head(stream: BinaryIO) -> tuple[int, list[tuple[bytes, bytes]]]:
    status = int(stream.readline().split(b" ")[1])
    headers = []
    while (line := stream.readline().rstrip(b"\r\n")) != b"":
        name, _, value = line.partition(b":")
        headers.append((name.lower(), value.strip(b" \t")))
    return status, headers
