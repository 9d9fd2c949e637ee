"""Whose traffic teaches: apps that opted in, each the sets it lists, by every source that reads recorded traffic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.scripted import serving
from tests.tfgrpo.store.examples import assignment, exchange, label
from tests.tfgrpo.test_main import policy, result, run, url
from tests.tfgrpo.test_trainer import optimizer
from tfgrpo import teaching
from tfgrpo.configuration import SafetySettings, load
from tfgrpo.store import Batch, Store
from tfgrpo.types import Bodies

KEYS = "keys: [os.environ/NOT_SET_HERE]"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    Store.open(url(tmp_path), migrate=True).close()
    return tmp_path


def record(
    home: Path, app: str, set_name: str | None, *, tasks: int = 1, said: str = "", key: str = "", first: int = 0
) -> None:
    """Log tasks of an app, each with a good and a bad rollout by one key; `said` stands in all of them."""
    store = Store.open(url(home))
    for number in range(first, first + tasks):
        for good in (True, False):
            name = f"{app}-{set_name}-{key}-{number}-{good}"
            asked = {"model": "m", "messages": [{"role": "user", "content": f"task {number} {said}"}]}
            answer = {"role": "assistant", "content": f"{'this' if good else 'that'} {said}"}
            answered = {"id": name, "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}]}
            mine: dict[str, Any] = {
                "app": app,
                "set": set_name,
                "trajectory": name,
                "group": f"{app}-{set_name}-{key}-{number}",
            }
            row = exchange(id=name, completion_id=name, credential=key, **mine)
            bodies = Bodies(json.dumps(asked).encode(), json.dumps(answered).encode(), response_type="application/json")
            store.traffic.add(Batch(exchanges=((row, bodies),), assignments=(assignment(**mine),)))
            told = label(feedback_id=name, app=app, exchange=name, value=float(good), reference="yes")
            store.labels.add([told])
    store.close()


def configured(home: Path, *apps: str) -> None:
    (home / "config.yaml").write_text(f"apps: [{', '.join('{' + app + '}' for app in apps)}]\n")


async def test_an_app_that_did_not_opt_in_teaches_nothing_and_the_run_says_how_much_is_left_out(home: Path) -> None:
    configured(home, f"name: shop, {KEYS}, sets: [s]")
    record(home, "shop", "s", tasks=2)
    async with serving(optimizer) as endpoint:
        code, _, err = await run(home, "train", "--set", "s", endpoint=endpoint)
    assert (code, endpoint.requests) == (1, [])
    assert "4 exchanges are left out, for their apps do not teach: shop (4)" in err
    assert "`teaches: true`" in err


async def test_an_app_that_opted_in_teaches(home: Path) -> None:
    configured(home, f"name: shop, {KEYS}, sets: [s], teaches: true", f"name: web, {KEYS}, sets: [s]")
    record(home, "shop", "s")
    record(home, "web", "s", tasks=3)
    async with serving(optimizer) as endpoint:
        made = await result(home, "train", "--set", "s", endpoint=endpoint)
    assert (made["contrasting"], made["not_teaching"]) == (1, {"web": 6})


async def test_nothing_of_one_apps_traffic_is_read_for_anothers_set(home: Path) -> None:
    names = ("a", "b", "c")
    configured(home, *(f"name: {name}, {KEYS}, sets: [{name}], teaches: true" for name in names))
    for name in names:
        # What an app sent under another set, when it was still allowed to, or under none, is not for that set either.
        for other in (*names, None):
            record(home, name, other, said=f"canary-{name}")
    async with serving(optimizer) as endpoint:
        for name in names:
            endpoint.requests.clear()
            await run(home, "train", "--set", name, endpoint=endpoint)
            seen = json.dumps(endpoint.requests)
            assert [one for one in names if f"canary-{one}" in seen] == [name]


async def test_replay_runs_no_task_of_an_app_that_did_not_opt_in(home: Path) -> None:
    configured(home, f"name: shop, {KEYS}, sets: [s], teaches: true", f"name: web, {KEYS}, sets: [s]")
    record(home, "shop", "s", said="canary-shop", tasks=4)
    record(home, "web", "s", said="canary-web")
    asked = ("--from", "replay", "--grader", "exact")
    async with serving(policy) as endpoint:
        code, _, err = await run(home, "train", "--set", "s", *asked, endpoint=endpoint)
    seen = json.dumps(endpoint.requests)
    assert code == 0, err
    assert ("canary-shop" in seen, "canary-web" in seen, "web (2)" in err) == (True, False, True)


async def test_without_apps_the_one_there_is_teaches_and_what_an_app_left_behind_does_not(home: Path) -> None:
    record(home, "default", "s")
    record(home, "gone", "s")
    counted = await result(home, "groups", "--set", "s")
    assert (counted["contrasting"], counted["not_teaching"]) == (1, {"gone": 2})


async def test_with_apps_clients_whose_key_nobody_knows_teach_nothing(home: Path) -> None:
    configured(home, f"name: shop, {KEYS}, sets: [s], teaches: true")
    record(home, "default", "s")
    counted = await result(home, "groups", "--set", "s")
    assert (counted["contrasting"], counted["not_teaching"]) == (0, {"default": 2})


def test_training_reads_no_key_of_an_app(tmp_path: Path) -> None:
    configured(tmp_path, f"name: shop, {KEYS}, sets: [s], teaches: true", "name: web, keys: [secret]")
    found = load(tmp_path / "config.yaml", environ={}, sections=("store", "apps"))
    assert [one.name for one in found.apps] == ["shop", "web"]
    assert "secret" not in repr(found)
    assert teaching.of_set("s", found.apps, SafetySettings()).apps == frozenset({"shop"})
    assert teaching.of_set("t", found.apps, SafetySettings()).apps == frozenset()


def test_apps_from_the_environment_are_heard() -> None:
    apps = json.dumps([{"name": "shop", "keys": ["k"], "teaches": True}])
    found = load(None, environ={"TFGRPO_APPS": apps}, sections=("store", "apps"))
    assert teaching.of_set(None, found.apps, SafetySettings()).apps == frozenset({"shop"})
