from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.transcript import FREE_BYTES, Copy, Transcript


class Purse:
    """A lender with so many bytes."""

    def __init__(self, left: int) -> None:
        self.left = left

    def lend(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True

    def take_back(self, size: int) -> None:
        self.left += size


def test_a_small_body_asks_nobody() -> None:
    purse = Purse(0)
    copy = Copy(1 << 20, purse)
    copy.add(b"x" * FREE_BYTES)
    assert (len(copy.joined()), copy.cut, copy.lent) == (FREE_BYTES, False, 0)


def test_a_copy_that_gets_no_more_is_cut() -> None:
    copy = Copy(1 << 20, Purse(100_000))
    for _ in range(20):
        copy.add(b"x" * 10_000)
    assert copy.cut
    assert FREE_BYTES <= len(copy.joined()) <= FREE_BYTES + 100_000


def test_what_was_lent_is_given_back_once() -> None:
    purse = Purse(1 << 20)
    transcript = Transcript(1 << 20, purse)
    transcript.request.add(b"x" * 100_000)
    transcript.received(b"x" * 200_000)
    lent = (1 << 20) - purse.left
    transcript.release()
    transcript.release()
    assert (lent >= 300_000 - 2 * FREE_BYTES, purse.left) == (True, 1 << 20)


@given(
    st.lists(st.integers(0, 90_000), max_size=12),
    st.sampled_from([1024, FREE_BYTES, 100_000, 300_000]),
    st.sampled_from([0, 70_000, 150_000, 1 << 20]),
)
def test_a_copy_is_the_bodys_beginning_and_within_its_loan(sizes: list[int], limit: int, purse: int) -> None:
    body = bytes(n % 251 for n in range(sum(sizes)))
    copy = Copy(limit, Purse(purse))
    at = 0
    for size in sizes:
        copy.add(body[at : at + size])
        at += size
    kept = copy.joined()
    assert body.startswith(kept)
    assert len(kept) <= min(limit, min(limit, FREE_BYTES) + copy.lent)
    assert copy.cut == (len(kept) < len(body))
    assert copy.lent <= purse


@pytest.mark.parametrize("purse", [0, 1 << 30])
def test_a_body_that_is_too_long_is_cut_at_the_limit(purse: int) -> None:
    copy = Copy(1024, Purse(purse))
    copy.add(b"x" * 5000)
    assert (len(copy.joined()), copy.cut, copy.lent) == (1024, True, 0)
