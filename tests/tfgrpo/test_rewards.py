from __future__ import annotations

import pytest

from tfgrpo.rewards import Placed, rewards
from tfgrpo.types import Label
from tfgrpo.weighing import Metric


def label(value: float, *, at: float | None = 1.0, exchange: str | None = "x1", **more: object) -> Placed:
    values: dict[str, object] = {
        "feedback_id": f"f{value}{at}{exchange}{more}",
        "app": "default",
        "exchange": exchange,
        "trajectory": None if exchange else "t",
        "choice": 0,
        "metric": "reward",
        "value": value,
        "source": "user",
        "credential": "",
        "created_at": 1.0,
    } | more
    return Placed(Label(**values), "t", at if exchange else None)  # type: ignore[arg-type]


def test_the_latest_label_of_a_source_counts() -> None:
    found = rewards([label(0.0), label(1.0, created_at=2.0)])
    assert found["t", 0].value == 1.0


def test_sources_are_averaged() -> None:
    found = rewards([label(0.0, source="user"), label(1.0, source="test")])
    assert found["t", 0].value == 0.5


def test_a_label_on_the_trajectory_goes_before_those_on_its_exchanges() -> None:
    found = rewards([label(0.0, at=9.0), label(1.0, exchange=None)])
    assert found["t", 0].value == 1.0


def test_without_a_label_on_the_trajectory_the_last_labelled_exchange_decides() -> None:
    found = rewards([label(0.0, at=1.0, exchange="x1"), label(1.0, at=2.0, exchange="x2")])
    assert found["t", 0].value == 1.0


KEPT_APART = {
    "under the same source": label(0.0, credential="other", created_at=2.0),
    "on a later exchange": label(0.0, credential="other", at=2.0, exchange="x2"),
    "on the trajectory": label(0.0, credential="other", exchange=None),
}


@pytest.mark.parametrize("other", KEPT_APART.values(), ids=KEPT_APART)
def test_where_keys_are_bounded_none_takes_the_place_of_another(other: Placed) -> None:
    mine = label(1.0, credential="mine")
    assert rewards([mine, other], share=0.5)["t", 0].value == 0.5
    assert rewards([mine, other])["t", 0].value == 0.0
    assert rewards([label(0.5, credential="mine", created_at=0.5), mine, other], share=0.5)["t", 0].value == 0.5


def test_other_metrics_count_only_through_a_weighting() -> None:
    placed = [label(0.0), label(1.0, metric="tests")]
    assert rewards(placed)["t", 0].value == 0.0
    assert rewards(placed, {"reward": Metric(1.0), "tests": Metric(3.0)})["t", 0].value == 0.75


def test_metrics_weigh_the_same_whichever_sources_they_come_from() -> None:
    placed = [label(0.0, source="user"), label(1.0, metric="tests", source="ci")]
    assert rewards(placed, {"reward": Metric(1.0), "tests": Metric(3.0)})["t", 0].value == 0.75


def test_a_metric_with_another_range_is_mapped_to_the_unit_interval() -> None:
    metrics = {"reward": Metric(), "latency": Metric(1.0, worst=30.0, best=10.0)}
    for seconds, value in ((10.0, 1.0), (25.0, 0.625), (99.0, 0.5), (0.0, 1.0)):
        found = rewards([label(1.0), label(seconds, metric="latency")], metrics)
        assert found["t", 0].value == value


def test_choices_of_one_exchange_are_rollouts_of_their_own() -> None:
    found = rewards([label(0.0), label(1.0, choice=1)])
    assert (found["t", 0].value, found["t", 1].value) == (0.0, 1.0)


def test_comments_and_the_reference_come_with_the_reward() -> None:
    found = rewards([label(0.0, comment="too long", reference="42")])
    assert (found["t", 0].comments, found["t", 0].reference) == (("too long",), "42")
