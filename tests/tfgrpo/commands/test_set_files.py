"""Sets and training data in and out of files, as a user does it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import record, result, run, url
from tfgrpo.store import Store
from tfgrpo.types import Experience, Library


def kept(shown: dict[str, Any]) -> dict[str, Any]:
    """What an export must bring back."""
    return {name: shown[name] for name in ("experiences", "status", "parent", "policy_model", "run")}


async def test_an_export_taken_back_is_the_same_version(home: Path) -> None:
    library = Library((Experience("e2", "Say x.", ("g1",), 3), Experience("e5", r"Write \frac{a}{b}.")), 8)
    store = Store.open(url(home))
    store.sets.add_version("s", Library(), status="by hand")
    store.sets.add_version("s", library, status="helps", parent=1, policy_model="m", run="r")
    store.close()
    code, _, err = await run(home, "sets", "export", "s@2", "--output", "s.json")
    assert (code, "2 lessons" in err) == (0, True)
    made = await result(home, "sets", "import", "s.json", "--set", "s")
    assert kept(made) == kept(await result(home, "sets", "show", "s@2"))
    assert made["version"] == 3


async def test_a_foreign_list_becomes_the_first_version_of_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text(json.dumps({"G0": "Say x.", "G1": "", "G2": "word " * 40}))
    made = await result(tmp_path, "sets", "import", "list.json", "--set", "s")
    assert [one["id"] for one in made["experiences"]] == ["e1", "e2"]
    assert (made["status"], made["note"]) == ("by hand", "imported from list.json (flat JSON)")
    assert (made["refused"], made["long"]) == ([{"id": "G1", "reason": "no text"}], ["G2"])


@pytest.mark.parametrize("text", ['{"G0": 1}', "{", '{"G0": " "}'])
async def test_a_bad_file_is_one_line_and_stores_nothing(home: Path, text: str) -> None:
    (home / "f.json").write_text(text)
    code, out, err = await run(home, "sets", "import", "f.json", "--set", "s")
    assert (code, out, "f.json" in err.splitlines()[-1]) == (2, "", True)
    assert await result(home, "sets", "list") == []


async def test_rewarded_traffic_is_written_as_training_data(home: Path) -> None:
    record(home, tasks=2)
    code, _, err = await run(home, "traffic", "export", "--set", "s", "--output", "t.jsonl")
    rows = [json.loads(line) for line in (home / "t.jsonl").read_text().splitlines()]
    assert [row["messages"][0]["content"] for row in rows] == ["task 0", "task 1"]
    assert (code, "2 examples in t.jsonl; left out: 2 a reward below 0.5" in err) == (0, True)


async def test_traffic_without_a_rewarded_rollout_is_said_in_one_line(home: Path) -> None:
    record(home, tasks=1)
    code, out, err = await run(home, "traffic", "export", "--min-reward", "1", "--set", "absent")
    assert (code, out, err.count("\n")) == (1, "", 1)


async def test_a_file_with_a_secret_of_the_configuration_is_taken_without_that_lesson(home: Path) -> None:
    (home / "list.json").write_text(json.dumps({"G0": "Say x.", "G1": "Say open-sesame first."}))
    (home / "config.yaml").write_text(f"server: {{admin_key: open-sesame}}\nstore: {{url: '{url(home)}'}}\n")
    made = await result(home, "sets", "import", "list.json", "--set", "s", "--config", "config.yaml")
    assert [one["text"] for one in made["experiences"]] == ["Say x."]
    assert made["refused"] == [{"id": "G1", "reason": "it holds a secret of this configuration"}]


async def test_an_export_holds_no_secret_of_the_configuration(home: Path) -> None:
    store = Store.open(url(home))
    store.sets.add_version("s", Library((Experience("e1", "Say open-sesame first."),), 2), status="by hand")
    store.close()
    (home / "config.yaml").write_text(f"server: {{admin_key: open-sesame}}\nstore: {{url: '{url(home)}'}}\n")
    for form in ("json", "markdown", "reference", "agent-yaml"):
        code, out, err = await run(home, "sets", "export", "s@1", "--format", form, "--config", "config.yaml")
        assert (code, "redacted secret" in out, "open-sesame" in out) == (0, True, False)
        assert "1 lessons held a secret" in err
