"""A client for tests that sends exact bytes and reads what comes."""

from __future__ import annotations

import socket

from tests.upstreams import PATIENCE

ODD_BODY = (
    b'{ "model":"m","messages":[{"role":"user","content":"\\ud83d"}],"x":1e400,"x":0.10,"big":25122920421210000010 }'
)
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'


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
