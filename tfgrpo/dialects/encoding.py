"""Content encodings of recorded bodies. The relay never decodes; this is for reading a copy."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import brotli
import zstandard

MOST_BYTES = 64 * 1024 * 1024
"""What a body may grow to; a few kilobytes can be made to decode to gigabytes."""


def decoded(body: bytes, encoding: str) -> bytes | None:
    """Return the body without its content-encoding; None when it cannot be decoded or grows beyond 64 MiB.

    Of a body that was cut, as one is that the client left, what there is of it is returned.
    """
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        decode = _DECODERS.get(name)
        if decode is None:
            return None
        try:
            body = decode(body)
        except (zlib.error, brotli.error, zstandard.ZstdError, _TooLarge):
            return None
    return body


class _TooLarge(Exception):  # noqa: N818 - control flow of this module only
    """The decoded body passes the limit."""


def _gzip(body: bytes) -> bytes:
    return _inflate(body, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes) -> bytes:
    try:
        return _inflate(body, zlib.MAX_WBITS)
    except zlib.error:
        # Many servers send the raw form under this name.
        return _inflate(body, -zlib.MAX_WBITS)


def _inflate(body: bytes, window: int) -> bytes:
    plain = zlib.decompressobj(window).decompress(body, MOST_BYTES + 1)
    if len(plain) > MOST_BYTES:
        raise _TooLarge
    return plain


def _brotli(body: bytes) -> bytes:
    machine = brotli.Decompressor()
    plain: bytes = machine.process(body, output_buffer_limit=MOST_BYTES)
    if len(plain) >= MOST_BYTES:
        raise _TooLarge
    return plain


def _zstd(body: bytes) -> bytes:
    machine = zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True)
    plain = machine.read(MOST_BYTES + 1)
    if len(plain) > MOST_BYTES:
        raise _TooLarge
    return plain


def _identity(body: bytes) -> bytes:
    return body


_DECODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
    "identity": _identity,
}
