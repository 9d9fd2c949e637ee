from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

from tests.tfgrpo.scripted import JSON, Reply, sections, serving, stage
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import result, run, tasks, url
from tfgrpo.commands import memory
from tfgrpo.library import from_texts
from tfgrpo.store import Store
from tfgrpo.types import Library

SHOUT = "Shout at the user."
TRAINED = ("train", "--set", "s", "--from", "dataset", "--grader", "exact", "--data")


def harmed(request: JSON) -> Reply:
    """An optimizer with one idea, and a policy whom it harms."""
    if request["model"] == "policy":
        wrong = SHOUT in request["messages"][0]["content"] or crc32(json.dumps(request).encode()) % 2
        return "Answer: no" if wrong else "Answer: yes"
    match stage(request):
        case "contrast":
            return json.dumps({"analysis": "a", "lessons": [SHOUT]})
        case _:
            return json.dumps({"operations": [{"why": "w", "operation": "add", "ids": [], "text": SHOUT}]})


def found(store: Store, *texts: str | None, run: str = "r1", model: str | None = "m", at: float = 0.0) -> None:
    harmful: list[JSON] = [{"operation": "add", "ids": [], "text": text, "reason": "it cost 0.2"} for text in texts]
    store.runs.start(run, set_name="s", arguments={}, started_at=at)
    store.runs.finish(run, status="finished", result={"harmful": harmful, "policy_model": model})


async def test_what_did_harm_in_one_run_is_shown_to_the_optimizer_of_the_next(tmp_path: Path) -> None:
    settings = {"epochs": 1, "group_size": 2, "batch_size": 30, "gate": {"samples": 1}, "splits": {"held_out": 0.0}}
    (tmp_path / "config.yaml").write_text(json.dumps({"training": settings}))
    data = tasks(tmp_path, 50)
    async with serving(harmed) as endpoint:
        first = await result(tmp_path, *TRAINED, data, endpoint=endpoint)
        before = len(endpoint.requests)
        code, out, _ = await run(tmp_path, *TRAINED, data, "--seed", "1", endpoint=endpoint)
    assert ([one["text"] for one in first["harmful"]], first["inherited"]) == ([SHOUT], 0)
    later = [one for one in endpoint.requests[before:] if one["model"] != "policy" and stage(one) != "contrast"]
    assert later
    assert all(f"{SHOUT} (refused: in run {first['run']} with policy" in sections(one) for one in later)
    assert (code, "1 edits that did harm in earlier runs" in out) == (0, True)


async def test_each_text_is_inherited_once_and_its_newest_reason_stands(home: Path) -> None:
    store = Store.open(url(home))
    found(store, "Shout.", None, "Whisper.")
    found(store, "shout. ", run="r2", model=None, at=1.0)
    inherited = memory.inherited(store, "s", Library())
    assert [one.operation.text for one in inherited] == ["shout. ", "Whisper."]
    assert inherited[0].reason == "in run r2 with an unknown model, it cost 0.2"
    assert memory.inherited(store, "other", Library()) == ()
    store.close()


async def test_a_text_that_the_library_holds_is_not_inherited(home: Path) -> None:
    store = Store.open(url(home))
    found(store, "Shout.", "Whisper.")
    inherited = memory.inherited(store, "s", from_texts(["Whisper."]))
    assert [one.operation.text for one in inherited] == ["Shout."]
    store.close()


async def test_what_is_inherited_is_bounded(home: Path) -> None:
    store = Store.open(url(home))
    found(store, *(f"Say {n}." for n in range(memory.MOST + 5)))
    assert len(memory.inherited(store, "s", Library())) == memory.MOST
    store.close()
