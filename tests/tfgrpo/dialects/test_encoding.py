from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from functools import partial

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo.dialects import decoded
from tfgrpo.dialects.encoding import MOST_BYTES

PLAIN = b'{"id":"c"} ' * 50


def _raw_deflate(body: bytes) -> bytes:
    return zlib.compress(body)[2:-4]


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}

QUICK_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": partial(gzip.compress, compresslevel=1),
    "br": partial(brotli.compress, quality=1),
    "zstd": ENCODERS["zstd"],
}


@pytest.mark.parametrize("name", ENCODERS)
def test_each_encoding_is_undone(name: str) -> None:
    assert decoded(ENCODERS[name](PLAIN), name) == PLAIN


def test_deflate_without_its_wrapper_is_undone_too() -> None:
    assert decoded(_raw_deflate(PLAIN), "deflate") == PLAIN


@pytest.mark.parametrize("name", ["", "identity", " Identity "])
def test_no_encoding_leaves_the_body(name: str) -> None:
    assert decoded(PLAIN, name) == PLAIN


def test_several_encodings_are_undone_from_the_last_to_the_first() -> None:
    assert decoded(gzip.compress(brotli.compress(PLAIN)), "br, GZIP") == PLAIN


def test_an_unknown_encoding_cannot_be_undone() -> None:
    assert decoded(PLAIN, "rot13") is None


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_bytes_that_are_not_encoded_so_cannot_be_undone(name: str) -> None:
    assert decoded(PLAIN, name) is None


@pytest.mark.parametrize("name", ["gzip", "deflate", "br"])
def test_of_a_body_that_was_cut_the_rest_is_read(name: str) -> None:
    whole = ENCODERS[name](bytes(range(256)) + PLAIN)
    found = decoded(whole[:-10], name)
    assert found
    assert (bytes(range(256)) + PLAIN).startswith(found)


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_a_small_body_that_would_fill_the_memory_is_refused(name: str) -> None:
    assert decoded(QUICK_ENCODERS[name](bytes(MOST_BYTES + 1000)), name) is None


@given(st.binary(max_size=100), st.sampled_from([*ENCODERS, "x-gzip", "gzip, br"]))
def test_whatever_bytes_come_nothing_raises(body: bytes, name: str) -> None:
    decoded(body, name)
