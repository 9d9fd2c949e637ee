from __future__ import annotations

from proxy.randomness import AHEAD, RandomBytes


def test_no_byte_is_given_twice() -> None:
    supply = RandomBytes()
    taken = [supply.take(15) for _ in range(3 * AHEAD // 15)]
    assert len(set(taken)) == len(taken)
    assert {len(one) for one in taken} == {15}
