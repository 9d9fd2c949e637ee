from __future__ import annotations

from dataclasses import replace

from tfgrpo.store import Finding, Store

ONE = Finding("k1", "comparison", "math", 1, "tasks", "m", None, {"verdict": "helps"})


def test_each_comparison_is_another_use_of_its_tasks(store: Store) -> None:
    assert [store.evidence.claim(replace(ONE, key=key)) for key in ("k1", "k2", "k3")] == [1, 2, 3]


def test_the_very_same_comparison_is_no_new_use(store: Store) -> None:
    store.evidence.claim(ONE)
    store.evidence.claim(replace(ONE, key="k2"))
    assert (store.evidence.uses("math", "tasks", key="k1"), store.evidence.claim(ONE)) == (1, 1)


def test_asking_which_use_it_would_be_uses_nothing(store: Store) -> None:
    assert [store.evidence.uses("math", "tasks", key="k1") for _ in range(2)] == [1, 1]


def test_other_tasks_and_other_sets_have_uses_of_their_own(store: Store) -> None:
    store.evidence.claim(ONE)
    assert store.evidence.claim(replace(ONE, key="k2", split="others")) == 1
    assert store.evidence.claim(replace(ONE, set="poems")) == 1


def test_what_decides_nothing_is_no_use(store: Store) -> None:
    store.evidence.keep(ONE)
    assert store.evidence.claim(replace(ONE, key="k2")) == 1


def test_what_was_kept_becomes_a_use_once_it_decides(store: Store) -> None:
    store.evidence.claim(replace(ONE, key="k0"))
    store.evidence.keep(ONE)
    assert store.evidence.claim(ONE) == 2


def test_the_newest_finding_of_a_version_is_found(store: Store) -> None:
    store.evidence.keep(replace(ONE, kind="ablation", result={"n": 1}))
    store.evidence.keep(replace(ONE, kind="ablation", key="k2", result={"n": 2}))
    found = store.evidence.newest("ablation", "math", 1)
    assert (found and found.result, store.evidence.newest("ablation", "math", 2)) == ({"n": 2}, None)
