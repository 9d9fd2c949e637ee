"""`tfgrpo traffic import` as a person uses it: files of three formats, whole and damaged, once and twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfgrpo.__main__ import main
from tfgrpo.store import Store
from tfgrpo.types import Exchange

Take = Callable[..., tuple[int, str]]


def completion(name: str, asked: list[dict[str, Any]], said: str, *, at: int = 1_700_000_000) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    made = {"id": name, "object": "chat.completion", "created": at, "model": "m", "choices": [choice], "usage": usage}
    return {**made, "messages": asked}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def spend(name: str, text: str, said: str, **more: Any) -> dict[str, Any]:
    stored = completion(name, [], said)
    del stored["messages"]
    row = {
        "request_id": name,
        "call_type": "acompletion",
        "api_key": "CANARY-hash",
        "user": "CANARY-user",
        "startTime": "2026-01-31T12:00:00",
        "endTime": "2026-01-31T12:00:02.500000",
        "model": "openai/m",
        "model_group": "m",
        # As the API of LiteLLM writes it, and as its table does: JSON, and text of JSON.
        "messages": [user(text)],
        "response": json.dumps(stored),
        "metadata": json.dumps({"user_api_key": "CANARY-meta"}),
        "status": "success",
    }
    return {**row, **more}


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/t.db"


@pytest.fixture
def take(tmp_path: Path, address: str, capsys: pytest.CaptureFixture[str]) -> Take:
    (tmp_path / "c.yaml").write_text(json.dumps({"store": {"url": address}}))

    def run(rows: list[Any] | str, form: str) -> tuple[int, str]:
        """Import rows; return the exit code and what was said, the result as JSON first."""
        written = tmp_path / "in.jsonl"
        lines = rows if isinstance(rows, str) else "".join(f"{json.dumps(row)}\n" for row in rows)
        written.write_text(lines)
        words = ["traffic", "import", str(written), "--format", form, "--set", "s", "--app", "shop"]
        code = main([*words, "--config", str(tmp_path / "c.yaml"), "--json"])
        captured = capsys.readouterr()
        return code, captured.out or captured.err

    return run


def stored(address: str) -> list[Exchange]:
    store = Store.open(address)
    try:
        return sorted(store.traffic.page(limit=100), key=lambda one: one.started_at)
    finally:
        store.close()


def test_stored_completions_become_exchanges_of_the_set(take: Take, address: str) -> None:
    code, said = take([completion(f"c{n}", [user("1+1?")], "2", at=1_700_000_000 + n) for n in range(2)], "openai")
    assert (code, json.loads(said)["new"]) == (0, 2)
    first, second = stored(address)
    assert (first.set, first.app, first.model, first.completion_id, first.prompt_tokens) == ("s", "shop", "m", "c0", 5)
    assert (first.group, first.trajectory == second.trajectory) == (second.group, False)


def test_a_conversation_is_one_trajectory_in_whatever_order_its_turns_stand(take: Take, address: str) -> None:
    opening = [user("hi")]
    later = [*opening, {"role": "assistant", "content": "yes?"}, user("1+1?")]
    rows = [completion("c2", later, "2", at=1_700_000_009), completion("c1", opening, "yes?")]
    assert take(rows, "openai")[0] == 0
    first, second = stored(address)
    assert (second.trajectory, second.parent) == (first.trajectory, first.id)


def test_spend_logs_become_exchanges_and_no_key_or_user_of_theirs_is_kept(
    take: Take, address: str, tmp_path: Path
) -> None:
    assert take([spend("r1", "1+1?", "2")], "litellm")[0] == 0
    (found,) = stored(address)
    assert (found.model, found.ended_at - found.started_at, found.finish_reason) == ("m", 2.5, "stop")
    assert not [path for path in tmp_path.glob("t.db*") if b"CANARY" in path.read_bytes()]


def test_a_json_list_is_taken_like_lines(take: Take) -> None:
    code, said = take(json.dumps([spend("r1", "1+1?", "2"), spend("r2", "1+1?", "3")]), "litellm")
    assert (code, json.loads(said)["new"]) == (0, 2)


def test_a_reward_becomes_a_label(take: Take, address: str) -> None:
    rows = [{**completion("c1", [user("q")], "a"), "metadata": {"reward": "0.25"}}]
    assert json.loads(take(rows, "openai")[1])["new_labels"] == 1
    store = Store.open(address)
    (label,) = store.labels.of_trajectory("shop", stored(address)[0].trajectory)
    store.close()
    assert (label.metric, label.value, label.source) == ("reward", 0.25, "import")


def test_importing_again_adds_nothing(take: Take, address: str) -> None:
    rows = [{**completion(f"c{n}", [user("q")], "a"), "reward": 1} for n in range(3)]
    take(rows, "openai")
    again = json.loads(take([*rows, completion("c9", [user("q")], "a")], "openai")[1])
    assert (again["exchanges"], again["new"], again["new_labels"], len(stored(address))) == (4, 1, 0, 4)


@pytest.mark.parametrize(
    ("row", "form", "reason"),
    [
        ("{", "openai", "not JSON"),
        ("3", "openai", "object"),
        (json.dumps({**completion("c", [], "a"), "messages": None}), "openai", "messages"),
        (json.dumps({**completion("c", [user("q")], "a"), "choices": []}), "openai", "choices"),
        (json.dumps({**completion("c", [user("q")], "a"), "reward": 7}), "openai", "reward"),
        (json.dumps({**completion("c", [user("q")], "a"), "created": "soon"}), "openai", "created"),
        (json.dumps({**completion("c", [user("q")], "a"), "id": 3}), "openai", "id"),
        (json.dumps(completion("good", [user("q")], "a")), "openai", "earlier line"),
        (json.dumps(spend("r", "q", "a", messages="{}")), "litellm", "messages"),
        (json.dumps(spend("r", "q", "a", response={})), "litellm", "choices"),
        (json.dumps(spend("r", "q", "a", status="failure")), "litellm", "failed"),
        (json.dumps(spend("r", "q", "a", startTime=None)), "litellm", "startTime"),
        (json.dumps({"format": "tfgrpo traffic 1", "exchanges": 3}), "tfgrpo", "damaged"),
    ],
)
def test_a_line_that_does_not_fit_is_named_and_takes_no_other_with_it(
    take: Take, tmp_path: Path, row: str, form: str, reason: str
) -> None:
    good = completion("good", [user("q")], "a") if form == "openai" else spend("good", "q", "a")
    if form == "tfgrpo":
        take([good], "litellm")
        good = json.loads(exported(tmp_path))
    code, said = take(f"{json.dumps(good)}\n\n{row}\n", form)
    result = json.loads(said)
    (unfit,) = result["unfit"]
    assert (code, result["exchanges"], unfit["line"], len(stored(f"sqlite:///{tmp_path}/t.db"))) == (0, 1, 3, 1)
    assert reason in unfit["reason"]


@pytest.mark.parametrize("rows", ["", "{\n", "[3", "[]"])
def test_a_file_without_any_exchange_is_refused(take: Take, rows: str) -> None:
    code, said = take(rows, "openai")
    assert (code, len(said.splitlines()) <= 2) == (2, True)


def exported(folder: Path, url: str | None = None) -> str:
    config, out = folder / "e.yaml", folder / "out.jsonl"
    config.write_text(json.dumps({"store": {"url": url or f"sqlite:///{folder}/t.db"}}))
    words = ["traffic", "export", "--format", "tfgrpo", "--config", str(config), "--output", str(out)]
    assert main(words) == 0
    return out.read_text()


def test_our_own_export_gives_the_same_traffic_in_another_store(take: Take, tmp_path: Path, address: str) -> None:
    take([{**completion("c1", [user("q")], "ä"), "reward": 1}, completion("c2", [user("q")], "b")], "openai")
    written = exported(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "in.jsonl").write_text(written)
    (other / "c.yaml").write_text(json.dumps({"store": {"url": f"sqlite:///{other}/t.db"}}))
    words = ["traffic", "import", str(other / "in.jsonl"), "--format", "tfgrpo", "--set", "s", "--app", "shop"]
    for _ in range(2):
        assert main([*words, "--config", str(other / "c.yaml")]) == 0
    assert stored(f"sqlite:///{other}/t.db") == stored(address)
    assert exported(other) == written


def test_traffic_of_a_version_that_is_not_there_is_not_taken(take: Take, tmp_path: Path) -> None:
    take([completion("c1", [user("q")], "a")], "openai")
    line = json.loads(exported(tmp_path))
    line["exchanges"][0]["version"] = 3
    code, said = take([line], "tfgrpo")
    assert (code, "s@3" in said) == (2, True)
