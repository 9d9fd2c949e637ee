from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from proxy.auth import Keys
from proxy.exchange_ids import ExchangeIds
from proxy.feedback import BODY_BYTES, FeedbackEndpoint
from proxy.label_targets import Targets
from proxy.label_writer import LabelWriter
from proxy.recording import Recorder
from proxy.settings import App, Server, Settings
from tests.proxy.asgi import Answer, call
from tests.proxy.examples import assignment, exchange, store
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Exchange, Label

SECRET = b"s" * 32
SHOP = App(name="shop", keys=(SecretStr("shop-1"), SecretStr("shop-2")), feedback_key=SecretStr("shop-labels"))
BANK = App(name="bank", keys=(SecretStr("bank-1"),))
ADMIN = Server(admin_key=SecretStr("root"))


class Desk:
    """A feedback endpoint on a real store, with what it works with."""

    def __init__(self, kept: Store, settings: Settings) -> None:
        self.store = kept
        self.ids = ExchangeIds(SECRET)
        self.keys = Keys(settings, SECRET)
        self.recorder = Recorder(kept)
        self.writer = LabelWriter(kept)
        self.writer.start()
        apps = [app.name for app in settings.apps]
        targets = Targets(kept, self.recorder, self.ids, self.keys, apps, patience=0.2)
        self.endpoint = FeedbackEndpoint(self.keys, targets, self.writer)

    def record(self, id_: str, **more: Any) -> None:
        self.store.traffic.add(Batch(exchanges=((self.made(id_, **more), Bodies()),)))

    def made(self, id_: str, *, key: str = "", **more: Any) -> Exchange:
        return exchange(id_, credential=self.keys.hashed(key.encode()), **more)

    async def post(self, body: Any, *, key: str | None = None) -> Answer:
        return await call(self.endpoint, "POST", "/v1/feedback", body, key=key)

    def stored(self, app: str = "default", trajectory: str = "t-1") -> list[Label]:
        return self.store.labels.of_trajectory(app, trajectory)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def desk(kept: Store) -> Iterator[Desk]:
    made = Desk(kept, Settings(server=ADMIN))
    made.record("ex-1", completion_id="chatcmpl-1")
    yield made
    made.writer.stop()


@pytest.fixture
def apps(kept: Store) -> Iterator[Desk]:
    made = Desk(kept, Settings(server=ADMIN, apps=(SHOP, BANK)))
    made.record("ex-1", app="shop", completion_id="chatcmpl-1", key="shop-1")
    made.store.traffic.add(Batch(assignments=(assignment("t-1", app="shop"),)))
    yield made
    made.writer.stop()


async def test_a_label_by_completion_id_is_stored(desk: Desk) -> None:
    answer = await desk.post({"completion_id": "chatcmpl-1", "value": 0.7, "comment": "close", "reference": "42"})
    assert answer.status == 200
    assert answer.json["status"] == "stored"
    (label,) = desk.stored()
    assert (label.exchange, label.value, label.metric, label.source) == ("ex-1", 0.7, "reward", "user")
    assert (label.comment, label.reference, label.feedback_id) == ("close", "42", answer.json["feedback_id"])


@pytest.mark.parametrize(("value", "number"), [(True, 1.0), (False, 0.0), (1, 1.0), (0.25, 0.25)])
async def test_true_is_one_and_false_is_zero(desk: Desk, value: Any, number: float) -> None:
    await desk.post({"completion_id": "chatcmpl-1", "value": value})
    assert [label.value for label in desk.stored()] == [number]


async def test_a_list_is_answered_in_its_order(desk: Desk) -> None:
    posts = [{"completion_id": "chatcmpl-1", "value": 1, "source": s, "feedback_id": s} for s in ("a", "b")]
    answer = await desk.post(posts)
    assert answer.json == [{"feedback_id": s, "status": "stored"} for s in ("a", "b")]


async def test_of_a_list_with_one_fault_nothing_is_stored(desk: Desk) -> None:
    posts = [{"completion_id": "chatcmpl-1", "value": 1}, {"completion_id": "chatcmpl-1", "value": 2}]
    answer = await desk.post(posts)
    assert (answer.status, answer.error["param"]) == (400, "[1].value")
    assert desk.stored() == []


async def test_the_same_feedback_id_again_is_one_label(desk: Desk) -> None:
    post = {"completion_id": "chatcmpl-1", "value": 1, "feedback_id": "once"}
    answers = [await desk.post(post), await desk.post(post)]
    assert [answer.json["status"] for answer in answers] == ["stored", "duplicate"]
    assert len(desk.stored()) == 1


async def test_the_same_feedback_id_with_other_content_is_a_conflict(desk: Desk) -> None:
    post = {"completion_id": "chatcmpl-1", "value": 1, "feedback_id": "once"}
    await desk.post(post)
    answer = await desk.post([{**post, "feedback_id": "new"}, {**post, "value": 0}])
    assert (answer.status, answer.error["param"]) == (409, "[1].feedback_id")
    assert len(desk.stored()) == 1


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e400", "1.5", "-0.1", '"1"', "null", "[1]", "9" * 400]
)
async def test_a_value_that_is_no_reward_is_refused(desk: Desk, value: str) -> None:
    answer = await desk.post(f'{{"completion_id": "chatcmpl-1", "value": {value}}}'.encode())
    assert (answer.status, answer.error["param"], answer.error["type"]) == (400, "value", "proxy_error")


async def test_another_metric_may_lie_outside_zero_and_one(desk: Desk) -> None:
    answer = await desk.post({"completion_id": "chatcmpl-1", "value": -17.5, "metric": "latency"})
    assert answer.status == 200


async def test_two_spellings_of_a_metric_are_one(desk: Desk) -> None:
    for metric in ("user-rating", "User_Rating"):
        await desk.post({"completion_id": "chatcmpl-1", "value": 1, "metric": metric})
    assert {label.metric for label in desk.stored()} == {"user_rating"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("metric", "two words"),
        ("metric", ""),
        ("metric", 7),
        ("choice", -1),
        ("choice", 1),
        ("choice", True),
        ("choice", 0.5),
        ("comment", 7),
        ("reference", ["42"]),
        ("source", ""),
        ("source", "a\nb"),
        ("feedback_id", ""),
        ("feedback_id", "a b"),
        ("completion_id", 7),
    ],
)
async def test_a_field_that_does_not_fit_is_named(desk: Desk, field: str, value: Any) -> None:
    answer = await desk.post({"completion_id": "chatcmpl-1", "value": 1, field: value})
    assert (answer.status, answer.error["param"]) == (400, field)


async def test_an_id_as_long_as_a_gateway_makes_them_is_labelled(desk: Desk) -> None:
    """LiteLLM's proxy 1.108.7 gives a response 425 characters."""
    long = f"resp_{'x' * 420}"
    desk.record("ex-long", completion_id=long)
    assert (await desk.post({"completion_id": long, "value": 1})).status == 200
    assert (await desk.post({"completion_id": "x" * 1001, "value": 1})).error["param"] == "completion_id"


async def test_unknown_fields_are_refused_by_name(desk: Desk) -> None:
    answer = await desk.post({"completion_id": "chatcmpl-1", "value": 1, "score": 1, "vote": 1})
    assert answer.status == 400
    assert "'score', 'vote'" in answer.error["message"]


@pytest.mark.parametrize("named", [{}, {"completion_id": None}, {"completion_id": "c", "exchange_id": "e"}])
async def test_exactly_one_target_must_be_named(desk: Desk, named: dict[str, Any]) -> None:
    assert (await desk.post({"value": 1, **named})).status == 400


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"7", b'"text"', b"null", b"[" * 100_000, b'{"value": "\\ud800"}']
)
async def test_a_body_that_is_no_label_is_refused(desk: Desk, body: bytes) -> None:
    assert (await desk.post(body)).status == 400


async def test_a_body_over_the_limit_is_refused(desk: Desk) -> None:
    answer = await desk.post({"completion_id": "chatcmpl-1", "value": 1, "comment": "x" * BODY_BYTES})
    assert answer.status == 413


async def test_another_method_is_refused(desk: Desk) -> None:
    answer = await call(desk.endpoint, "GET", "/v1/feedback")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_an_unknown_completion_id_is_safe_to_repeat(desk: Desk) -> None:
    answer = await desk.post({"completion_id": "chatcmpl-9", "value": 1})
    assert (answer.status, answer.error["code"]) == (404, "not_found_yet")


async def test_a_completion_id_is_waited_for(desk: Desk) -> None:
    posting = asyncio.create_task(desk.post({"completion_id": "chatcmpl-2", "value": 1}))
    await asyncio.sleep(0)
    desk.record("ex-2", completion_id="chatcmpl-2")
    assert (await posting).status == 200


async def test_a_record_that_waits_to_be_written_is_found(desk: Desk) -> None:
    desk.recorder.put(desk.made("ex-2", completion_id="chatcmpl-2"), Bodies())
    assert (await desk.post({"completion_id": "chatcmpl-2", "value": 1})).status == 200


async def test_a_completion_id_that_two_exchanges_share_asks_for_the_exchange_id(desk: Desk) -> None:
    desk.record("ex-2", completion_id="chatcmpl-1")
    answer = await desk.post({"completion_id": "chatcmpl-1", "value": 1})
    assert answer.status == 409
    assert "exchange_id" in answer.error["message"]


async def test_an_exchange_id_of_ours_is_labelled_before_its_record_is_there(desk: Desk) -> None:
    made = desk.ids.new("default", "")
    assert (await desk.post({"exchange_id": made, "value": 1})).status == 200
    desk.record(made, trajectory="t-late")
    assert [label.exchange for label in desk.stored(trajectory="t-late")] == [made]


async def test_a_forged_exchange_id_is_not_found(desk: Desk) -> None:
    forged = ExchangeIds(b"x" * 32).new("default", "")
    answer = await desk.post({"exchange_id": forged, "value": 1})
    assert (answer.status, answer.error["code"]) == (404, "not_found")


async def test_each_choice_that_was_asked_for_can_be_labelled(desk: Desk) -> None:
    desk.record("ex-2", completion_id="chatcmpl-2", choices=2, trajectory="t-2")
    answers = [await desk.post({"completion_id": "chatcmpl-2", "value": 1, "choice": k}) for k in (0, 1, 2)]
    assert [answer.status for answer in answers] == [200, 200, 400]


async def test_in_the_default_app_another_credential_may_not_label(desk: Desk) -> None:
    desk.record("ex-2", completion_id="chatcmpl-2", key="sk-mine")
    post = {"completion_id": "chatcmpl-2", "value": 1}
    assert (await desk.post(post, key="sk-other")).status == 404
    assert (await desk.post(post, key="sk-mine")).status == 200


async def test_the_admin_key_may_label_everything(desk: Desk) -> None:
    made = desk.ids.new("default", desk.keys.hashed(b"sk-mine"))
    desk.record(made, completion_id="chatcmpl-2", key="sk-mine")
    for post in ({"completion_id": "chatcmpl-2"}, {"exchange_id": made}, {"trajectory_id": "t-1"}):
        assert (await desk.post({**post, "value": 1}, key="root")).status == 200


@pytest.mark.parametrize("key", ["shop-1", "shop-2", "shop-labels", "root"])
async def test_every_key_of_the_app_and_the_admin_key_may_label(apps: Desk, key: str) -> None:
    made = apps.ids.new("shop", apps.keys.hashed(b"shop-1"))
    apps.record(made, app="shop", key="shop-1", trajectory="t-2")
    for post in ({"completion_id": "chatcmpl-1"}, {"exchange_id": made}, {"trajectory_id": "t-1"}):
        answer = await apps.post({**post, "value": 1}, key=key)
        assert answer.status == 200, answer.body


async def test_another_app_finds_nothing(apps: Desk) -> None:
    made = apps.ids.new("shop", apps.keys.hashed(b"shop-1"))
    apps.record(made, app="shop", key="shop-1", trajectory="t-2")
    for post in ({"completion_id": "chatcmpl-1"}, {"exchange_id": made}, {"trajectory_id": "t-1"}):
        assert (await apps.post({**post, "value": 1}, key="bank-1")).status == 404


async def test_an_unknown_key_is_refused_before_anything_else(apps: Desk) -> None:
    assert (await apps.post(b"{", key="sk-unknown")).status == 401


async def test_a_trajectory_is_labelled_as_a_whole(apps: Desk) -> None:
    await apps.post({"trajectory_id": "t-1", "value": 0.5}, key="shop-1")
    (label,) = apps.stored("shop")
    assert (label.trajectory, label.exchange) == ("t-1", None)


async def test_an_unknown_trajectory_is_not_found(apps: Desk) -> None:
    assert (await apps.post({"trajectory_id": "t-9", "value": 0.5}, key="shop-1")).status == 404


async def test_posts_that_come_together_are_all_stored_though_one_conflicts(desk: Desk) -> None:
    await desk.post({"completion_id": "chatcmpl-1", "value": 1, "feedback_id": "f-7"})
    posts = [{"completion_id": "chatcmpl-1", "value": 0, "feedback_id": f"f-{n}"} for n in range(40)]
    answers = await asyncio.gather(*(desk.post(post) for post in posts))
    assert [answer.status for answer in answers].count(200) == 39
    assert answers[7].status == 409


async def test_a_store_that_does_not_answer_is_said_to_be_away(desk: Desk, tmp_path: Path) -> None:
    made = desk.ids.new("default", "")
    desk.store.close()
    (tmp_path / "store.db").unlink()
    answer = await desk.post({"exchange_id": made, "value": 1})
    assert answer.status == 503
    assert json.loads(answer.body)["error"]["code"] == "store_unavailable"
