from __future__ import annotations

from proxy.link_cache import MOST_OF_ONE_KEY, LinkCache, Node
from tests.proxy.examples import assignment


def node(exchange: str, *, taken: bool = False) -> Node:
    return Node(exchange, assignment("t-1"), 0.0, taken)


def names(cache: LinkCache, key: str) -> list[str]:
    return [found.exchange for found in cache.find(key)]


def test_nodes_of_one_key_are_found_the_oldest_first() -> None:
    cache = LinkCache()
    cache.add("k", node("a"))
    cache.add("k", node("b"))
    assert names(cache, "k") == ["a", "b"]


def test_an_exchange_stands_under_a_key_once() -> None:
    cache = LinkCache()
    cache.add("k", node("a"))
    cache.add("k", node("a"))
    assert len(cache) == 1


def test_what_was_not_asked_for_the_longest_is_evicted() -> None:
    cache = LinkCache(2)
    cache.add("old", node("a"))
    cache.add("asked", node("b"))
    cache.find("old")
    cache.add("new", node("c"))
    assert (names(cache, "old"), names(cache, "asked"), names(cache, "new")) == (["a"], [], ["c"])


def test_of_too_many_twins_a_taken_one_goes_first() -> None:
    cache = LinkCache()
    for number in range(MOST_OF_ONE_KEY):
        cache.add("k", node(f"{number}", taken=number == 5))
    cache.add("k", node("new"))
    assert "5" not in names(cache, "k")
    assert len(cache) == MOST_OF_ONE_KEY


def test_of_too_many_twins_the_newest_always_stays() -> None:
    cache = LinkCache()
    for number in range(MOST_OF_ONE_KEY):
        cache.add("k", node(f"{number}"))
    cache.add("k", node("new", taken=True))
    assert names(cache, "k")[-1] == "new"


def test_replacing_leaves_one_node_under_the_key() -> None:
    cache = LinkCache()
    cache.add("k", node("a"))
    cache.add("k", node("b"))
    cache.replace("k", node("c"))
    assert names(cache, "k") == ["c"]
    assert len(cache) == 1
