"""The README's application and the how-tos, run as they stand by the official SDK, before the simulated provider."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from openai import ConflictError, OpenAI

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.simulated import simulated
from tests.tfgrpo.recorded.test_import import spend
from tests.upstreams import PATIENCE, answer, completion
from tfgrpo.__main__ import main
from tfgrpo.simulation.tasks import grade
from tfgrpo.simulation.world import World

ROOT = Path(__file__).parents[1]
README, HOWTO = (ROOT / "README.md").read_text(), (ROOT / "docs/howto.md").read_text()
KEY = "sk-howto"
TASKS, ATTEMPTS = 40, 4


def blocks(text: str, kind: str, under: str = "") -> list[str]:
    """Return the blocks of code of that kind, from the heading `under` to the next."""
    (part,) = re.findall(rf"^## {under}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL) if under else [text]
    return re.findall(rf"^```{kind}\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with simulated() as url:
        yield url


@pytest.fixture
def proxy(start_proxy: StartProxy, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunningProxy:
    """A proxy in whose folder the commands are run."""
    model = {"base_url": provider, "price": {"prompt": 0, "completion": 0}}
    sections: dict[str, Any] = {
        "store": {"url": f"sqlite:///{tmp_path}/howto.db"},
        "routes": [{"set": "support", "models": ["*"]}],
        "training": {"policy": {"model": "sim-policy", **model}, "optimizer": {"model": "sim-optimizer", **model}},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(sections))
    monkeypatch.chdir(tmp_path)
    return start_proxy(provider, **sections)


@pytest.fixture
def client(proxy: RunningProxy) -> Iterator[OpenAI]:
    with OpenAI(base_url=proxy.base_url, api_key=KEY) as made:
        yield made


def ask(client: OpenAI, text: str) -> Any:
    return client.chat.completions.create(model="sim-policy", messages=[{"role": "user", "content": text}])


def warm(client: OpenAI) -> int:
    """Ask until the store answers in time, and return how often: one that is slow at first leaves a named trajectory
    unknown, which is then not begun.
    """
    for asked in range(1, 100):
        said = client.chat.completions.with_raw_response.create(
            model="sim-policy",
            messages=[{"role": "user", "content": "Hello."}],
            extra_headers={"x-tfgrpo-trajectory": "warm"},
        )
        if said.headers["x-tfgrpo-arm"] != "unknown":
            return asked
    raise AssertionError


def exchanges(proxy: RunningProxy, count: int) -> list[dict[str, Any]]:
    """Return what was recorded, once so many are: a label by exchange or trajectory may be stored before."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found: list[dict[str, Any]] = proxy.request("GET", "/admin/api/exchanges").json["exchanges"]
        if len(found) == count:
            return found
    raise AssertionError(found)


def labels(proxy: RunningProxy, trajectory: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = proxy.request("GET", f"/admin/api/trajectories/{trajectory}").json["labels"]
    return found


def run(*lines: str) -> None:
    for line in lines:
        assert main(line.split("#")[0].removeprefix(".venv/bin/tfgrpo ").split()) == 0, line


def test_the_application_of_the_readme_asks_and_labels(
    proxy: RunningProxy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = blocks(README, "python")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    moved = program.replace("http://127.0.0.1:8000/v1", proxy.base_url).replace("gpt-4.1-mini", "sim-policy")
    made: dict[str, Any] = {}
    exec(moved, made)  # noqa: S102 - our own documentation
    made["client"].close()
    assert capsys.readouterr().out.strip() == made["answer"].choices[0].message.content.strip()
    (exchange,) = exchanges(proxy, 1)
    assert [(one["value"], one["source"]) for one in labels(proxy, exchange["trajectory"])] == [(1.0, "user")]


def test_labels_come_from_thumbs_from_tests_and_from_a_judge(proxy: RunningProxy, client: OpenAI) -> None:
    thumbs, tests, judge = blocks(HOWTO, "python", "Label")
    warmed = warm(client)
    asked = ask(client, "Which day?")
    messages = [{"role": "user", "content": "Mend it."}]
    known = {"client": client, "answer": asked, "run_id": "run-1", "model": "sim-policy", "messages": messages}
    exec(thumbs + tests + judge, {**known, "passed": 3, "total": 4})  # noqa: S102 - our own documentation
    judged = [one["trajectory"] for one in exchanges(proxy, 2 + warmed)]
    of_answer = labels(proxy, next(one for one in judged if one not in ("run-1", "warm")))
    assert {(one["source"], one["value"]) for one in of_answer} == {("user", 1.0), ("judge", 0.4)}
    assert "The second step lacks its unit." in [one["comment"] for one in of_answer]
    assert [(one["source"], one["value"]) for one in labels(proxy, "run-1")] == [("tests", 0.75)]


def test_what_ollama_answers_is_labelled_though_its_ids_come_again(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    """A server in Ollama's form: chats have few ids, streams and all else as OpenAI has them."""
    upstream = start_upstream(lambda _: [answer(completion("four", id_="chatcmpl-42"))])
    proxy = start_proxy(upstream.base_url, routes=[{"set": "french", "models": ["*"]}])
    proxy.deploy("french", "Always answer in French.")
    (labelling,) = blocks((ROOT / "docs/local-models.md").read_text(), "python")
    with OpenAI(base_url=proxy.base_url, api_key="ollama") as client:
        for text in ("2+2?", "3+1?"):
            exec(labelling, {"client": client, "model": "m", "messages": [{"role": "user", "content": text}]})  # noqa: S102 - our own documentation
        with pytest.raises(ConflictError, match="exchange_id"):
            client.post("/feedback", body={"completion_id": "chatcmpl-42", "value": True}, cast_to=object)
    assert all(b"Always answer in French." in one.body for one in upstream.seen)
    assert [len(labels(proxy, one["trajectory"])) for one in exchanges(proxy, 2)] == [1, 1]


def test_a_set_is_trained_tried_on_a_part_of_traffic_and_rolled_back(proxy: RunningProxy, client: OpenAI) -> None:
    for task in World.draw(0).tasks(TASKS, split="train") * ATTEMPTS:
        asked = ask(client, task["question"])
        body = {"completion_id": asked.id, "value": grade(asked.choices[0].message.content or "", task["answer"])}
        client.post("/feedback", body=body, cast_to=object)
    (train,), (canary,), (back,) = (blocks(HOWTO, "sh", one) for one in ("Train", "Canary", "Roll back"))
    run(*train.splitlines())
    for text in ("Check the units.", "Answer in a list."):
        proxy.request("POST", "/admin/api/sets/support/versions", {"experiences": [{"text": text}]})
    run("sets deploy support@2", *canary.splitlines())
    deployed = proxy.request("GET", "/admin/api/sets/support/deployment").json
    assert (deployed["live"], deployed["candidate"], deployed["shares"]) == (2, 3, {"candidate": 0.1, "control": 0.1})
    run(*back.splitlines())
    after = proxy.request("GET", "/admin/api/sets/support/deployment").json
    assert (after["live"], after["candidate"]) == (2, None)


def test_what_was_recorded_elsewhere_is_imported(proxy: RunningProxy, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [spend(f"r{number}", "1+1?", str(number)) for number in range(2)]
    Path("spend_logs.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    (lines,) = blocks(HOWTO, "sh", "Start from what was recorded before")
    run(*lines.splitlines())
    assert "2 trajectories" in capsys.readouterr().out
    assert proxy.request("GET", "/admin/api/sets").status == 200
