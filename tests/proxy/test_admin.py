from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from proxy import admin
from proxy.admin_experiment import ExperimentApi
from proxy.auth import Keys
from proxy.bypass import Bypass
from proxy.deployments import Deployments
from proxy.experiments import Experiments
from proxy.settings import App, Server, Settings
from tests.proxy.asgi import Answer, call
from tests.proxy.examples import assignment, exchange, store
from tfgrpo.experiment import Levels
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies, Label

LESSONS = {"experiences": [{"text": "Show each step."}, {"text": "Check the units."}]}


class Console:
    """The admin API on a real store, called by an administrator."""

    def __init__(self, kept: Store, deployments: Deployments, settings: Settings) -> None:
        self.store = kept
        self.deployments = deployments
        experiments = Experiments(kept, window=86400, early=3600, levels=Levels())
        live = ExperimentApi(experiments, "manual")
        self.app = admin.create(kept, deployments, Keys(settings, b"s" * 32), live, bypass=Bypass(kept))

    async def call(self, method: str, path: str, body: Any = None, *, key: str | None = "root") -> Answer:
        return await call(self.app, method, f"/admin/api/{path}", body, key=key)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Store]:
    opened = store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
async def deployments(kept: Store) -> AsyncIterator[Deployments]:
    made = Deployments(kept, interval=3600)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def console(kept: Store, deployments: Deployments) -> Console:
    made = Console(kept, deployments, Settings(server=Server(admin_key=SecretStr("root"))))
    for _ in range(2):
        assert (await made.call("POST", "sets/math/versions", LESSONS)).status == 201
    return made


async def test_a_version_by_hand_is_numbered_and_kept(console: Console) -> None:
    made = await console.call("POST", "sets/law/versions", {**LESSONS, "note": "mine"})
    assert (made.status, made.json) == (201, {"set": "law", "version": 1})
    found = (await console.call("GET", "sets/law/versions/1")).json
    assert [entry["text"] for entry in found["experiences"]] == ["Show each step.", "Check the units."]
    assert (found["status"], found["note"]) == ("by hand", "mine")


async def test_a_version_names_its_parent(console: Console) -> None:
    await console.call("POST", "sets/math/versions", {**LESSONS, "parent": 1})
    assert (await console.call("GET", "sets/math/versions/3")).json["parent"] == 1


async def test_a_parent_that_does_not_exist_is_not_found(console: Console) -> None:
    assert (await console.call("POST", "sets/math/versions", {**LESSONS, "parent": 9})).status == 404


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "experiences"),
        ({"experiences": "text"}, "experiences"),
        ({"experiences": [{"text": ""}]}, "experiences[0].text"),
        ({"experiences": [{"text": "a\nb"}]}, "experiences[0].text"),
        ({"experiences": [{"text": "x" * 2001}]}, "experiences[0].text"),
        ({"experiences": [{"text": 7}]}, "experiences[0].text"),
        ({"experiences": [{"text": "a", "weight": 1}]}, "experiences[0].weight"),
        ({"experiences": [{"text": "a", "id": "x y"}]}, "experiences[0].id"),
        ({"experiences": [{"text": "a", "id": "e1"}, {"text": "b", "id": "e1"}]}, "experiences[1].id"),
        ({"experiences": [], "parent": "1"}, "parent"),
    ],
)
async def test_a_version_that_does_not_fit_is_refused_and_the_field_named(
    console: Console, body: Any, param: str
) -> None:
    answer = await console.call("POST", "sets/math/versions", body)
    assert (answer.status, answer.error["param"], answer.error["type"]) == (400, param, "proxy_error")


async def test_a_set_must_have_a_name_of_the_grammar(console: Console) -> None:
    assert (await console.call("POST", "sets/Math!/versions", LESSONS)).status == 400


async def test_a_version_with_an_entry_that_cannot_be_a_lesson_is_a_400_that_names_it(console: Console) -> None:
    lessons = [{"text": "Check the units."}, {"text": "Ask https://a.example/x first."}]
    answer = await console.call("POST", "sets/law/versions", {"experiences": lessons})
    assert answer.status == 400
    assert answer.json["error"]["param"] == "experiences[1].text"
    assert "URL" in answer.json["error"]["message"]


async def test_a_set_shows_its_versions_and_its_deployment(console: Console) -> None:
    await console.call("PUT", "sets/math/deployment", {"live": 1})
    found = (await console.call("GET", "sets/math")).json
    assert [version["version"] for version in found["versions"]] == [1, 2]
    assert (found["set"], found["deployment"]["live"]) == ("math", 1)


async def test_all_sets_are_listed(console: Console) -> None:
    found = (await console.call("GET", "sets")).json
    assert found == {"sets": [{"set": "math", "versions": 2, "deployment": None}]}


@pytest.mark.parametrize("path", ["sets/law", "sets/law/versions", "sets/law/history", "sets/law/deployment"])
async def test_a_set_that_does_not_exist_is_not_found(console: Console, path: str) -> None:
    assert (await console.call("GET", path)).status == 404


async def test_a_deployment_is_in_force_when_it_is_answered(console: Console) -> None:
    body = {"live": 1, "candidate": 2, "shares": {"candidate": 0.1, "control": 0.2}, "reason": "try", "if_revision": 0}
    answer = await console.call("PUT", "sets/math/deployment", body)
    assert (answer.status, answer.json["revision"]) == (200, 1)
    assert (await console.call("GET", "sets/math/deployment")).json == answer.json
    current = console.deployments.current("math")
    assert current is not None
    assert (current.live, current.candidate, current.shares) == (1, 2, {"candidate": 0.1, "control": 0.2})


async def test_deploying_for_another_model_than_a_version_was_learned_for_warns(
    console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    learned = console.store.sets.version("math", 1).library
    made = console.store.sets.add_version("math", learned, status="unproven", policy_model="learner")
    console.store.traffic.add(Batch(exchanges=((exchange("ex-1"), Bodies()),)))
    answer = await console.call("PUT", "sets/math/deployment", {"live": made.version})
    assert answer.status == 200
    assert "was learned for learner, and the set's traffic goes to" in answer.json["warnings"][0]
    assert answer.json["warnings"][0] in caplog.text


async def test_what_a_deployment_does_not_name_is_unset(console: Console) -> None:
    await console.call("PUT", "sets/math/deployment", {"live": 1, "candidate": 2, "shares": {"candidate": 0.5}})
    answer = await console.call("PUT", "sets/math/deployment", {"live": None})
    assert (answer.json["live"], answer.json["candidate"], answer.json["shares"]) == (None, None, {})


@pytest.mark.parametrize(
    ("path", "body"), [("sets/law/deployment", {"live": 1}), ("sets/math/deployment", {"live": 9})]
)
async def test_what_is_not_there_cannot_be_deployed(console: Console, path: str, body: Any) -> None:
    answer = await console.call("PUT", path, body)
    assert (answer.status, answer.error["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b'{"live": 1, "shares": {"control": NaN}}', "shares.control"),
        (b'{"live": 1, "shares": {"control": 1e999}}', "shares.control"),
        ({"live": 1, "shares": {"control": -0.1}}, "shares.control"),
        ({"live": 1, "shares": {"control": 1.1}}, "shares.control"),
        ({"live": 1, "shares": {"control": "0.1"}}, "shares.control"),
        ({"live": 1, "shares": {"control": True}}, "shares.control"),
        ({"live": 1, "candidate": 2, "shares": {"candidate": 0.6, "control": 0.6}}, "shares"),
        ({"live": 1, "shares": {"live": 1.0}}, "shares.live"),
        ({"live": 1, "shares": {"candidate": 0.1}}, "candidate"),
        ({"live": 1.5}, "live"),
        ({"live": True}, "live"),
        ({"live": 1, "version": 2}, "version"),
        ({}, "live"),
        ({"reason": "x"}, "live"),
        ({"shares": {"control": 0.1}}, "live"),
        ({"live": 0}, "live"),
        ({"live": -1}, "live"),
        ({"live": 1 << 63}, "live"),
        ({"live": 1, "candidate": 0, "shares": {"candidate": 0.1}}, "candidate"),
        ({"live": 1, "candidate": -2, "shares": {"candidate": 0.1}}, "candidate"),
        (b"{", None),
        (b"[]", None),
        (b"", None),
    ],
)
async def test_a_deployment_that_does_not_fit_is_refused(console: Console, body: Any, param: str | None) -> None:
    answer = await console.call("PUT", "sets/math/deployment", body)
    assert (answer.status, answer.error["param"]) == (400, param)
    assert console.store.sets.deployment("math") is None


async def test_another_revision_than_expected_is_a_conflict(console: Console) -> None:
    await console.call("PUT", "sets/math/deployment", {"live": 1})
    answer = await console.call("PUT", "sets/math/deployment", {"live": 2, "if_revision": 0})
    assert (answer.status, answer.error["code"]) == (409, "conflict")


async def test_a_rollback_restores_what_was_live_before(console: Console) -> None:
    for version in (1, 2):
        await console.call("PUT", "sets/math/deployment", {"live": version})
    answer = await console.call("POST", "sets/math/rollback", {"reason": "worse"})
    assert (answer.status, answer.json["live"], answer.json["revision"]) == (200, 1, 3)
    assert console.deployments.newest_rollback("math") == 3


async def test_a_rollback_needs_no_body_and_something_to_go_back_to(console: Console) -> None:
    await console.call("PUT", "sets/math/deployment", {"live": 1})
    answer = await console.call("POST", "sets/math/rollback")
    assert answer.status == 409


async def test_the_history_says_who_did_what_and_why(console: Console) -> None:
    await console.call("PUT", "sets/math/deployment", {"live": 1, "reason": "first"})
    await console.call("PUT", "sets/math/deployment", {"live": 2})
    await console.call("POST", "sets/math/rollback", {"reason": "worse"})
    history = (await console.call("GET", "sets/math/history")).json["history"]
    assert [(one["action"], one["reason"]) for one in history] == [
        ("rollback", "worse"),
        ("deploy", ""),
        ("deploy", "first"),
    ]
    assert all(one["actor"] and one["created_at"] for one in history)


@pytest.mark.parametrize("key", [None, "wrong"])
async def test_without_the_admin_key_nothing_is_answered(console: Console, key: str | None) -> None:
    answer = await console.call("GET", "sets", key=key)
    assert (answer.status, answer.error["type"]) == (401, "proxy_error")


@pytest.mark.parametrize("key", ["app-key", "feedback-key", "", "roo", "root' or 1=1 --", "r\u00f6\u00f6t"])
@pytest.mark.parametrize(
    "asked",
    [
        *[("GET", path) for path in ("sets", "sets/math", "sets/math/versions", "sets/math/versions/1")],
        *[("GET", path) for path in ("sets/math/deployment", "sets/math/history", "exchanges", "exchanges/e")],
        *[("GET", "trajectories/t"), ("PUT", "sets/math/deployment"), ("POST", "sets/math/versions")],
        *[("POST", "sets/math/rollback"), ("GET", "nothing"), ("DELETE", "sets")],
    ],
    ids=" ".join,
)
async def test_no_other_key_opens_any_of_it(
    kept: Store, deployments: Deployments, asked: tuple[str, str], key: str
) -> None:
    app = App(name="a", keys=(SecretStr("app-key"),), feedback_key=SecretStr("feedback-key"))
    console = Console(kept, deployments, Settings(server=Server(admin_key=SecretStr("root")), apps=(app,)))
    assert (await console.call(*asked, {"live": 0, "reason": "x"}, key=key)).status == 401
    assert kept.sets.deployment("math") is None


async def test_without_a_configured_key_this_machine_is_let_in(kept: Store, deployments: Deployments) -> None:
    console = Console(kept, deployments, Settings())
    assert (await console.call("GET", "sets", key=None)).status == 200


async def test_a_wrong_method_is_refused_in_our_envelope(console: Console) -> None:
    answer = await console.call("DELETE", "sets/math/deployment")
    assert (answer.status, answer.error["code"]) == (405, "method_not_allowed")
    assert {name.strip() for name in answer.headers["allow"].split(",")} == {"GET", "HEAD", "PUT"}


async def test_an_unknown_path_is_refused_in_our_envelope(console: Console) -> None:
    answer = await console.call("GET", "nothing")
    assert (answer.status, answer.error["code"]) == (404, "not_found")


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=1000", "before=nan", "next=x", "page=2"])
async def test_a_query_that_does_not_fit_is_refused(console: Console, query: str) -> None:
    answer = await console.call("GET", f"exchanges?{query}")
    assert (answer.status, answer.error["param"]) == (400, query.partition("=")[0])


async def test_an_exchange_is_shown_with_its_bodies_and_labels(console: Console) -> None:
    bodies = Bodies(b'{"q": 1}', "ä".encode())
    console.store.traffic.add(Batch(exchanges=((exchange("ex-1"), bodies),)))
    label = Label("f-1", "default", "ex-1", None, 0, "reward", 1.0, "user", "", 1.0)
    console.store.labels.add([label])
    found = (await console.call("GET", "exchanges/ex-1")).json
    assert (found["request"], found["response"]) == ('{"q": 1}', "ä")
    assert [one["value"] for one in found["labels"]] == [1.0]


async def test_a_trajectory_of_a_session_is_shown_with_its_exchanges(console: Console) -> None:
    made = Batch(exchanges=((exchange("ex-1", trajectory="S/2"), Bodies(b"q")),), assignments=(assignment("S/2"),))
    console.store.traffic.add(made)
    found = (await console.call("GET", "trajectories/S/2")).json
    assert (found["trajectory"], [one["request"] for one in found["exchanges"]]) == ("S/2", ["q"])


@pytest.mark.parametrize("path", ["exchanges/ex-9", "trajectories/t-9"])
async def test_traffic_that_does_not_exist_is_not_found(console: Console, path: str) -> None:
    assert (await console.call("GET", path)).status == 404
