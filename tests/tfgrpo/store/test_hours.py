"""What happened, added up by the hour as it is recorded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from tests.tfgrpo.store.examples import assignment, exchange, label
from tfgrpo.store import START, Batch, Difference, Fact, Rewarded, Store
from tfgrpo.store.hours import HOUR, latency
from tfgrpo.store.migrations import STEPS, TYPES
from tfgrpo.types import Bodies, Exchange


def batch(*exchanges: Exchange) -> Batch:
    return Batch(tuple((one, Bodies()) for one in exchanges))


def met(store: Store, *, since: int = 0, width: int = 1) -> dict[tuple[int, str], int]:
    return {(one.step, one.name): one.count for one in store.hours.facts(since=since, width=width)}


def test_what_is_recorded_is_added_up_by_the_hour_in_which_it_began(store: Store) -> None:
    store.traffic.add(batch(exchange(1, prompt_tokens=7), exchange(2, outcome="failed", prompt_tokens=2)))
    late = exchange(3, started_at=5.0 * HOUR, completion_tokens=40)
    store.traffic.add(Batch(((late, Bodies()),), (assignment(3, started_at=5.0 * HOUR),)))
    assert met(store) == {
        (0, "complete"): 1,
        (0, "failed"): 1,
        (0, "prompt tokens"): 9,
        (5, "complete"): 1,
        (5, "completion tokens"): 40,
        (5, "begun"): 1,
    }
    assert met(store, since=3, width=2) == {(1, "complete"): 1, (1, "completion tokens"): 40, (1, "begun"): 1}


def test_what_is_sent_again_is_counted_once(store: Store) -> None:
    both = Batch(((exchange(1), Bodies()),), (assignment(1),))
    store.traffic.add(both)
    store.traffic.add(Batch((*both.exchanges, (exchange(2), Bodies())), both.assignments))
    assert met(store) == {(0, "complete"): 2, (0, "begun"): 1}


@pytest.mark.parametrize("seconds", [0.0, 2e-6, 0.00031, 0.0042, 1.7])
def test_the_latency_that_the_proxy_added_is_told_within_a_tenth(store: Store, seconds: float) -> None:
    store.traffic.add(batch(exchange(1, sent_at=1.0 + seconds)))
    (added,) = [name for _, name in met(store) if name.startswith("added ")]
    assert latency(added) == pytest.approx(max(seconds, 1e-6), rel=0.1)


def test_two_proxies_that_record_at_once_lose_no_count(store: Store, url: str) -> None:
    other = Store.open(url)
    batches = [batch(*(exchange(100 * place + one) for one in range(100))) for place in range(10)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda pair: pair[0].traffic.add(pair[1]), zip([store, other] * 5, batches, strict=True)))
    other.close()
    assert met(store)[0, "complete"] == 1000


def test_rewards_are_added_to_their_set_hour_and_arm_once(store: Store) -> None:
    to = (9.0, "default", "f-1")
    first = {("math", 4, "live"): Difference(2, 1.5), ("", 4, "none"): Difference(1, 1.0)}
    assert store.hours.count(first, after=START, to=to)
    assert not store.hours.count(first, after=START, to=to)
    assert store.hours.count({("math", 4, "live"): Difference(0, -0.5)}, after=to, to=(10.0, "default", "f-2"))
    assert store.hours.counted() == (10.0, "default", "f-2")
    assert store.hours.rewards("math", since=4, width=24) == [Rewarded(0, "live", 2, 1.0)]
    assert store.hours.facts(since=0, width=1) == [Fact(4, "labelled", 3)]
    assert store.hours.rewarded_sets() == ["", "math"]


def test_labels_are_taken_in_the_order_in_which_they_came(store: Store) -> None:
    store.labels.add([label(number) for number in (3, 1, 2)])
    assert [one.feedback_id for one in store.hours.uncounted((1.0, "default", "f-1"), until=3.0)] == ["f-2"]


def test_a_store_of_an_earlier_release_is_added_up_when_it_is_migrated(store: Store, url: str) -> None:
    late = exchange(2, started_at=5.9 * HOUR, prompt_tokens=3, completion_tokens=4)
    store.traffic.add(Batch(((exchange(1), Bodies()), (late, Bodies())), (assignment(1), assignment(2))))
    before = met(store)
    step = next(step for step in STEPS if any("CREATE TABLE hours" in str(one) for one in step))
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE hours"))
        connection.execute(text("DROP TABLE reward_hours"))
        connection.execute(text("ALTER TABLE exchanges DROP COLUMN sent_at"))
        for statement in step:
            connection.execute(text(str(statement).format(**TYPES[connection.dialect.name])))
    engine.dispose()
    assert met(store) == before
