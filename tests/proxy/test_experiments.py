"""A live experiment from recorded rows: what its books hold, how it is shown, what is done with its candidate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec import structs
from pydantic import SecretStr

from proxy import admin
from proxy.admin_experiment import ExperimentApi
from proxy.auth import Keys
from proxy.bypass import Bypass
from proxy.deployments import Deployments
from proxy.experiments import Experiments
from proxy.outstanding import Outstanding
from proxy.promotion import Promotion
from proxy.settings import Server, Settings
from tests.proxy import examples
from tests.proxy.asgi import Answer, call
from tests.proxy.drawn import DAY, HOUR, SHARES, Traffic, deploy
from tfgrpo.experiment import Levels
from tfgrpo.library import Limits, from_texts
from tfgrpo.store import Store
from tfgrpo.types import Deployment, Library
from tfgrpo.weighing import Metric


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = examples.store(tmp_path)
    deploy(opened)
    yield opened
    opened.close()


@pytest.fixture
def traffic(kept: Store) -> Traffic:
    return Traffic(kept)


@pytest.fixture
def experiments(kept: Store, traffic: Traffic) -> Experiments:
    return Experiments(kept, window=DAY, early=HOUR, levels=Levels(), clock=traffic.clock)


@pytest.fixture
async def deployments(kept: Store) -> AsyncIterator[Deployments]:
    made = Deployments(kept, interval=3600)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def promotion(kept: Store, deployments: Deployments, experiments: Experiments) -> Promotion:
    return Promotion(kept, deployments, experiments, share=0.1)


async def shown(kept: Store, deployments: Deployments, experiments: Experiments, path: str) -> Answer:
    settings = Settings(server=Server(admin_key=SecretStr("root")))
    app = admin.create(
        kept, deployments, Keys(settings, b"s" * 32), ExperimentApi(experiments, "manual"), bypass=Bypass(kept)
    )
    return await call(app, "GET", f"/admin/api/sets/{path}", key="root")


def test_a_trajectory_counts_at_the_age_of_the_window_and_not_before(
    traffic: Traffic, experiments: Experiments
) -> None:
    traffic.begin("live", 1.0)
    traffic.now = DAY
    assert _settled(experiments) == 0
    traffic.now = DAY + 1
    assert _settled(experiments) == 1


def test_its_reward_is_the_label_that_it_had_at_that_age(traffic: Traffic, experiments: Experiments) -> None:
    traffic.begin("live", 1.0, after=DAY + 1)
    traffic.begin("candidate", 1.0, after=DAY - 1)
    traffic.now = 3 * DAY
    books = experiments.look("math")
    assert books is not None
    assert (books.account.tallies["live"].labelled, books.account.tallies["candidate"].labelled) == (0, 1)


def test_looking_often_comes_to_the_same_as_looking_once(kept: Store, traffic: Traffic) -> None:
    often, once = (Experiments(kept, window=DAY, early=HOUR, levels=Levels(), clock=traffic.clock) for _ in range(2))
    for _ in range(6):
        traffic.many(100, {"live": 0.7, "candidate": 0.6, "control": 0.5}, seconds=900)
        often.look("math")
    first, second = often.look("math"), once.look("math")
    assert first is not None
    assert second is not None
    for one, other in zip(first.account, second.account, strict=True):
        assert one.reward.sequence.interval(0.05) == other.reward.sequence.interval(0.05)
        assert one.reward.sequence.count == other.reward.sequence.count > 100
    assert first.account.early is not None
    assert second.account.early is not None
    assert first.account.early.sequence.interval(0.05) == second.account.early.sequence.interval(0.05)
    assert first.account.early.sequence.count == second.account.early.sequence.count


def test_only_the_first_label_of_a_trajectory_counts_early(traffic: Traffic, experiments: Experiments) -> None:
    row = traffic.begin("candidate", 1.0)
    again = structs.replace(examples.label("f-again", 0.0), exchange=f"ex-{row.trajectory}", created_at=90.0)
    other = structs.replace(examples.label("f-other", 1.0), exchange=f"ex-{row.trajectory}", metric="m", created_at=1.0)
    traffic.store.labels.add([again, other])
    traffic.now = 200.0
    books = experiments.look("math")
    assert books is not None
    assert books.account.early is not None
    assert books.account.early.sequence.count == 1
    assert (books.account.early.sequence.mean or 0) > 0


def test_labels_come_to_a_reward_by_the_metrics_of_training(kept: Store, traffic: Traffic) -> None:
    row = traffic.begin("live", None)
    said = structs.replace(examples.label("f", 5.0), exchange=f"ex-{row.trajectory}", metric="stars", created_at=1.0)
    kept.labels.add([said])
    traffic.now = 2 * DAY
    metrics = {"stars": Metric(worst=1, best=5)}
    weighed = Experiments(kept, window=DAY, early=HOUR, levels=Levels(), metrics=metrics, clock=traffic.clock)
    books = weighed.look("math")
    assert books is not None
    assert (books.account.tallies["live"].labelled, books.account.tallies["live"].rewards) == (1, 1.0)


def test_groups_that_a_version_was_trained_on_are_told_apart(traffic: Traffic, experiments: Experiments) -> None:
    traffic.begin("live", 1.0, group="g-seen")
    traffic.begin("live", 1.0, group="g-new")
    traffic.now = 2 * DAY
    books = experiments.look("math")
    assert books is not None
    pair = books.account.against_live()
    assert pair is not None
    assert (pair.reward.sequence.count, pair.fresh.sequence.count) == (2, 1)


async def test_the_arms_and_their_differences_are_shown(
    kept: Store, deployments: Deployments, traffic: Traffic, experiments: Experiments
) -> None:
    traffic.many(1000, {"live": 0.7, "candidate": 0.7, "control": 0.3})
    traffic.now += DAY + 60
    found = (await shown(kept, deployments, experiments, "math/experiment")).json
    arms = {one["arm"]: one for one in found["arms"]}
    assert sum(one["n"] for one in arms.values()) == 1000
    assert arms["live"]["mean_reward"] == pytest.approx(0.7, abs=0.1)
    assert arms["live"]["label_rate"] == pytest.approx(0.7, abs=0.1)
    assert (arms["candidate"]["mean_tokens"], arms["candidate"]["mean_seconds"]) == (30, pytest.approx(2.0))
    assert [(one["arm"], one["other"]) for one in found["differences"]] == [
        ("candidate", "live"),
        ("candidate", "control"),
        ("live", "control"),
    ]
    to_control = found["differences"][2]["reward"]
    assert to_control["interval"][0] < to_control["effect"] < to_control["interval"][1]
    assert found["decision"]["action"] == "none"


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("law/experiment", (404, "there is no set 'law'")),
        ("math/experiment?revision=9", (404, "no revision 9")),
        ("math/experiment?revision=x", (400, "'x'")),
    ],
)
async def test_what_there_is_none_of_is_refused(
    kept: Store, deployments: Deployments, experiments: Experiments, path: str, refusal: tuple[int, str]
) -> None:
    answer = await shown(kept, deployments, experiments, path)
    assert answer.status == refusal[0]
    assert refusal[1] in answer.error["message"]


async def test_a_set_without_a_deployment_has_no_arms(
    kept: Store, deployments: Deployments, experiments: Experiments
) -> None:
    kept.sets.add_version("law", Library(), status="by hand")
    answer = await shown(kept, deployments, experiments, "law/experiment")
    assert (answer.status, answer.json["arms"], answer.json["decision"]["action"]) == (200, [], "none")


async def test_an_experiment_without_labels_is_undecided(
    kept: Store, deployments: Deployments, experiments: Experiments
) -> None:
    found = (await shown(kept, deployments, experiments, "math/experiment")).json
    assert found["differences"][0]["reward"] == {"n": 0, "effect": None, "interval": [None, None]}


async def test_a_better_candidate_becomes_live(kept: Store, traffic: Traffic, promotion: Promotion) -> None:
    traffic.many(4000, {"live": 0.5, "candidate": 0.8, "control": 0.5})
    await promotion.look()
    now = _now(kept)
    assert (now.live, now.candidate, now.shares, now.actor) == (2, None, {"control": 0.1}, "promotion")
    assert "better than live" in now.reason


async def test_a_worse_candidate_goes_and_live_stays(kept: Store, traffic: Traffic, promotion: Promotion) -> None:
    traffic.many(800, {"live": 0.7, "candidate": 0.2, "control": 0.7})
    traffic.now += 60
    await promotion.look()
    now = _now(kept)
    assert (now.live, now.candidate, now.action) == (1, None, "rollback")
    assert "worse than live" in now.reason
    assert kept.sets.newest_rollback("math") == now.revision


async def test_what_was_rolled_back_is_never_restored(kept: Store, traffic: Traffic, promotion: Promotion) -> None:
    kept.sets.deploy("math", live=None, reason="before", actor="me")
    kept.sets.deploy("math", live=1, candidate=2, shares=SHARES, reason="again", actor="me")
    traffic.many(800, {"live": 0.7, "candidate": 0.2, "control": 0.7}, revision=3)
    traffic.now += 60
    await promotion.look()
    assert _now(kept).live == 1
    assert kept.sets.rollback("math", reason="", actor="me").live is None


async def test_a_candidate_that_fails_goes(kept: Store, traffic: Traffic, promotion: Promotion) -> None:
    for _ in range(40):
        traffic.begin("candidate", None, outcome="failed")
        traffic.begin("live", None)
        traffic.begin("live", None)
        traffic.now += 1
    traffic.now = 2 * HOUR
    await promotion.look()
    assert "fail more often" in _now(kept).reason


async def test_equals_are_left_to_run(kept: Store, traffic: Traffic, promotion: Promotion) -> None:
    traffic.many(2000, {"live": 0.7, "candidate": 0.7, "control": 0.7})
    await promotion.look()
    assert _now(kept).revision == 1


async def test_another_proxy_that_holds_the_lease_acts_alone(
    kept: Store, traffic: Traffic, promotion: Promotion
) -> None:
    assert kept.runs.acquire("promotion", "another", 60)
    traffic.many(800, {"live": 0.7, "candidate": 0.2, "control": 0.7})
    traffic.now += 60
    await promotion.look()
    assert _now(kept).revision == 1


async def test_a_version_that_helps_is_tried_once(kept: Store, promotion: Promotion) -> None:
    kept.sets.deploy("math", live=1, shares={"control": 0.1}, reason="", actor="me")
    await promotion.look()
    assert _now(kept).revision == 2
    kept.sets.add_version("math", Library(), status="helps")
    await promotion.look()
    now = _now(kept)
    assert (now.live, now.candidate, now.shares) == (1, 3, {"candidate": 0.1, "control": 0.1})
    kept.sets.drop_candidate("math", reason="", actor="me", if_revision=now.revision)
    await promotion.look()
    assert _now(kept).candidate is None


async def test_a_version_over_the_budget_is_neither_tried_nor_promoted(
    kept: Store, traffic: Traffic, deployments: Deployments, experiments: Experiments, caplog: pytest.LogCaptureFixture
) -> None:
    strict = Promotion(kept, deployments, experiments, share=0.1, limits=Limits(entries=0))
    traffic.many(4000, {"live": 0.5, "candidate": 0.8, "control": 0.5})
    await strict.look()
    assert _now(kept).revision == 1
    kept.sets.deploy("math", live=1, reason="", actor="me")
    kept.sets.add_version("math", from_texts(["Check units."]), status="helps")
    await strict.look()
    assert (_now(kept).candidate, caplog.text.count("over its budget")) == (None, 2)


def test_the_second_candidate_of_a_set_needs_more(kept: Store, experiments: Experiments) -> None:
    first = experiments.levels(_now(kept))
    kept.sets.deploy("math", live=2, candidate=1, shares=SHARES, reason="", actor="me")
    assert (first.candidate, experiments.levels(_now(kept)).candidate) == (1, 2)


async def test_no_candidate_is_drawn_while_enough_await_their_label(
    kept: Store, deployments: Deployments, traffic: Traffic
) -> None:
    outstanding = Outstanding(kept, deployments, most=3, patience=HOUR, clock=traffic.clock)
    rows = [traffic.begin("candidate", None) for _ in range(2)]
    await outstanding.count()
    assert not outstanding.full(_now(kept))
    outstanding.drew("math")
    assert outstanding.full(_now(kept))
    rows.append(traffic.begin("candidate", None))
    await outstanding.count()
    assert outstanding.full(_now(kept))
    kept.labels.add([structs.replace(examples.label("f", 1.0), exchange=f"ex-{rows[0].trajectory}")])
    await outstanding.count()
    assert not outstanding.full(_now(kept))


async def test_what_is_never_labelled_does_not_hold_the_bound(
    kept: Store, deployments: Deployments, traffic: Traffic
) -> None:
    outstanding = Outstanding(kept, deployments, most=1, patience=HOUR, clock=traffic.clock)
    traffic.begin("candidate", None)
    await outstanding.count()
    assert outstanding.full(_now(kept))
    traffic.now = HOUR
    await outstanding.count()
    assert not outstanding.full(_now(kept))


def test_by_hand_there_is_no_bound(kept: Store, deployments: Deployments) -> None:
    outstanding = Outstanding(kept, deployments, most=None, patience=HOUR)
    for _ in range(1000):
        outstanding.drew("math")
    assert not outstanding.full(_now(kept))


def _settled(experiments: Experiments) -> int:
    books = experiments.look("math")
    assert books is not None
    return sum(tally.n for tally in books.account.tallies.values())


def _now(kept: Store) -> Deployment:
    found = kept.sets.deployment("math")
    assert found is not None
    return found
