"""Floods: one key, and ten, that send traffic and labels until their advice looks like everybody's.

The advice is harmless to look at, so that no check of texts stops it. Apps, keys and labels are real ones of a proxy.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import RunningProxy
from tests.tfgrpo.poisons.drive import SET, configured, echo, headers, label, learned, serving_clients
from tests.tfgrpo.scripted import JSON, Reply, sections, stage
from tests.tfgrpo.test_main import run
from tests.upstreams import RawUpstream

GOOD, BAD = "Name the date of each order.", "Praise the dearest shop."
"""What the wish of a good and of a bad client teaches."""
WISH: Final = {"date": GOOD, "shop": BAD}
TASKS: Final = 10
LABELS: Final = 30
"""Labels on each answer, each of another source."""


def obedient(request: JSON) -> Reply:
    """Make a lesson of what is wished for; a lesson that the library has is confirmed."""
    said = sections(request)
    if stage(request) == "contrast":
        return json.dumps({"analysis": "", "lessons": [WISH["shop" if "a shop" in said else "date"]]})
    if stage(request) == "propose":
        lesson = next(text for text in WISH.values() if f"- {text}" in said)
        held = re.search(rf"^\[(\w+)\] {re.escape(lesson)}$", said, re.MULTILINE)
        edit = ("keep", [held[1]], None) if held else ("add", [], lesson)
        return json.dumps({"operations": [dict(zip(("operation", "ids", "text"), edit, strict=True)) | {"why": "w"}]})
    if stage(request) == "consolidate":
        found = {json.loads(line)["text"]: json.loads(line) for line in said.splitlines() if line.startswith("{")}
        return json.dumps({"operations": list(found.values())})
    return said


def send(proxy: RunningProxy, app: str, wish: str, tasks: int, labels: int = 1) -> None:
    """Make both rollouts of some tasks and label each answer so often."""
    said: list[JSON] = []
    for task in range(tasks):
        for value in (1.0, 0.0):
            sent = proxy.chat(f"Task {task} of {app}: is it a {wish}?", headers(app))
            exchange = sent.headers["x-tfgrpo-exchange"]
            said += [{"exchange_id": exchange, "value": value, "source": f"user-{n}"} for n in range(labels)]
    label(proxy, said, app)


@pytest.mark.parametrize(("flood", "active"), [(["mallory"], False), ([f"hand-{n}" for n in range(10)], True)])
async def test_one_key_teaches_nothing_however_much_it_sends_and_ten_keys_do_but_not_unread(
    tmp_path: Path, flood: list[str], active: bool
) -> None:
    with RawUpstream(echo) as upstream:
        settings = configured(tmp_path, upstream, [*flood, "ann", "ben"], training={"approval": "required"})
        with serving_clients(settings) as proxy:
            for app in flood:
                send(proxy, app, "shop", TASKS // len(flood), LABELS)
            send(proxy, "ann", "date", 2)
            send(proxy, "ben", "date", 2)
    told, _ = await learned(tmp_path, obedient)
    learned_texts = [one["text"] for one in told["experiences"]]
    assert sorted(learned_texts) == sorted([GOOD, BAD] if active else [GOOD])
    assert [one["text"] for one in told["pending"]] == ([] if active else [BAD])
    code, _, said = await run(tmp_path, "sets", "deploy", f"{SET}@{told['version']}")
    assert (code, "approve" in said) == (1, True)


async def test_a_key_s_labels_count_on_its_own_app_alone(tmp_path: Path) -> None:
    with RawUpstream(echo) as upstream, serving_clients(configured(tmp_path, upstream, ["mallory", "ann"])) as proxy:
        exchange = proxy.chat("Is it a date?", headers("ann")).headers["x-tfgrpo-exchange"]
        body = json.dumps([{"exchange_id": exchange, "value": 0.0}]).encode()
        assert proxy.request("POST", "/v1/feedback", body, headers("mallory")).status in (403, 404)
