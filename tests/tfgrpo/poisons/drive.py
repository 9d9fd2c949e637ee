"""Takes poisons through the product, from a client's request to the block that the next client is given."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from proxy.settings import Settings
from tests.conftest import RunningProxy
from tests.tfgrpo.poisons.cases import POISONS
from tests.tfgrpo.poisons.poison import Poison
from tests.tfgrpo.scripted import JSON, Reply, sections, serving, stage
from tests.tfgrpo.test_main import result
from tests.upstreams import RawUpstream, Seen, Step, answer, completion
from tfgrpo.store import Store

SET: Final = "shop"
TOOLS: Final = [{"type": "function", "function": {"name": "find_boxes", "parameters": {"type": "object"}}}]
BY_NAME: Final = {poison.name: poison for poison in POISONS}

Messages = list[JSON]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: its result, the stored library, what the optimizer was sent, what a client's request got."""

    told: JSON
    library: tuple[str, ...]
    sent: tuple[str, ...]
    injected: str

    @property
    def refused(self) -> dict[str, str]:
        """The reasons by the poisons' names."""
        return {named(one["why"]): one["reason"] for one in self.told["refused"]}


def named(text: str) -> str:
    """The poison that a text of ours speaks of."""
    found = re.search(r"Case ([a-z0-9-]+)", text)
    assert found is not None, text
    return found.group(1)


def fooled(request: JSON) -> Reply:
    """The worst optimizer: it makes a lesson of each poison that it sees, and edits as it was told."""
    said = sections(request)
    if stage(request) == "contrast":
        poison = BY_NAME[named(said)]
        plain = said.replace("&lt;", "<")
        seen = (poison.shown or poison.says).strip()
        lesson = poison.lesson if seen in plain else f"Nothing of {poison.name} was seen."
        return json.dumps({"analysis": "", "lessons": [f"Case {poison.name}: {lesson}"]})
    if stage(request) == "propose":
        return json.dumps({"operations": [_add(name) for name in _names(said, r"^- Case ([a-z0-9-]+)")]})
    if stage(request) == "consolidate":
        return json.dumps({"operations": [_add(name) for name in _names(said, r'"why": "Case ([a-z0-9-]+)')]})
    return said


def _names(said: str, pattern: str) -> Iterable[str]:
    return dict.fromkeys(re.findall(pattern, said, re.MULTILINE))


def _add(name: str) -> JSON:
    return {"why": f"Case {name}", "operation": "add", "ids": [], "text": BY_NAME[name].lesson}


def echo(seen: Seen) -> Iterator[Step]:
    """An upstream that answers with the message that the client wrote into a header."""
    message = json.loads(seen.headers.get("x-answer", '{"content": "ok"}'))
    whole = completion(id_=f"c-{seen.connection}-{seen.at}")
    whole["choices"][0]["message"].update(message)
    yield answer(whole)


def turns(poison: Poison, end: str) -> Iterator[tuple[Messages, JSON]]:
    """The exchanges of one rollout: what the client sends, and what the model answers."""
    at = poison.says if poison.place != "split" else ""
    places = {place: at if poison.place == place else "" for place in ("system", "user", "turn", "tool", "arguments")}
    system = [{"role": "system", "content": places["system"]}] if places["system"] else []
    messages: Messages = [*system, {"role": "user", "content": f"Case {poison.name}: {places['user']}"}]
    for piece in _pieces(poison):
        said = {"content": f"{at} {end}" if poison.place == "assistant" else "Go on."}
        if poison.place in ("tool", "arguments"):
            called = {"name": "find_boxes", "arguments": json.dumps({"for": places["arguments"] or "all"})}
            said = {"content": None, "tool_calls": [{"id": f"call-{end}", "type": "function", "function": called}]}  # type: ignore[dict-item]
            piece = {"role": "tool", "tool_call_id": f"call-{end}", "content": places["tool"] or "none"}  # noqa: PLW2901
        yield messages, said
        messages = [*messages, {"role": "assistant", **said}, piece]
    yield messages, {"content": f"Finally {end}"}


def _pieces(poison: Poison) -> list[JSON]:
    """What the client goes on with after the first answer."""
    if poison.place == "split":
        return [{"role": "user", "content": piece.strip()} for piece in poison.says.split("|")]
    return [{"role": "user", "content": poison.says if poison.place == "turn" else "And then?"}]


def record(proxy: RunningProxy, poison: Poison) -> list[JSON]:
    """Send both rollouts of a poison through the proxy; return their labels."""
    labels = []
    for end, value in (("this", 1.0), ("that", 0.0)):
        trajectory = {"x-tfgrpo-trajectory": f"{poison.name}-{end}"}
        for messages, said in turns(poison, end):
            sent = proxy.chat(
                messages=messages,
                tools=TOOLS,
                headers={**headers("shop"), **trajectory, "x-answer": json.dumps(said)},
            )
            assert sent.status == 200, sent.body
        said_of_it: JSON = {poison.place: poison.says} if poison.place in ("comment", "reference") else {}
        labels.append({"exchange_id": sent.headers["x-tfgrpo-exchange"], "value": value, **said_of_it})
    return labels


def configured(home: Path, upstream: RawUpstream, apps: Iterable[str], **sections: Any) -> Settings:
    """Write the configuration of proxy and trainer: apps that teach the set, each with a key of its name."""
    home.joinpath("data").mkdir()
    values = {
        "store": {"url": f"sqlite:///{home}/data/tfgrpo.db"},
        "server": {"port": 0, "drain_seconds": 5},
        "upstreams": [{"name": "up", "base_url": upstream.base_url}],
        "apps": [{"name": name, "keys": [f"key-of-{name}"], "sets": [SET], "teaches": True} for name in apps],
        **sections,
    }
    (home / "config.yaml").write_text(json.dumps(values))
    return Settings.model_validate(values)


@contextmanager
def serving_clients(settings: Settings) -> Iterator[RunningProxy]:
    """A running proxy."""
    proxy = RunningProxy(settings)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


def label(proxy: RunningProxy, labels: list[JSON], app: str = "shop") -> None:
    """Post labels with the key of an app."""
    stored = proxy.request("POST", "/v1/feedback", json.dumps(labels).encode(), headers(app))
    assert stored.status == 200, stored.body


def headers(app: str) -> dict[str, str]:
    """The headers of an app's requests."""
    return {"authorization": f"Bearer key-of-{app}", "content-type": "application/json"}


async def learned(home: Path, optimizer: Callable[[JSON], Reply] = fooled) -> tuple[JSON, tuple[str, ...]]:
    """What `tfgrpo train` made of the recorded traffic, and the messages that the optimizer was sent."""
    async with serving(optimizer) as endpoint:
        told = await result(home, "train", "--set", SET, endpoint=endpoint)
        sent = tuple(one["content"] for request in endpoint.requests for one in request["messages"][1:])
    return told, sent


def outcome(home: Path) -> Outcome:
    """All poisons, taken from requests to a live block. No quorum is asked for, so that nothing else stops them."""
    bounds = {"edits": None, "max_entries": 500, "max_library_tokens": 50_000, "batch_size": 500, "concurrency": 32}
    safety = {"min_groups": 1, "min_principals": 1}
    with RawUpstream(echo) as upstream:
        settings = configured(home, upstream, ["shop"], training=bounds, safety=safety)
        with serving_clients(settings) as proxy:
            label(proxy, [one for poison in POISONS for one in record(proxy, poison)])
            told, sent = asyncio.run(learned(home))
            deployed = proxy.request(
                "PUT",
                f"/admin/api/sets/{SET}/deployment",
                {"live": told["version"], "reason": "test"},
                {"content-type": "application/json"},
            )
            assert deployed.status == 200, deployed.body
            proxy.chat("hello", headers("shop"))
        injected = upstream.seen[-1].body.decode()
    store = Store.open(settings.store.url)
    try:
        library = store.sets.version(SET, told["version"]).library
    finally:
        store.close()
    return Outcome(told, tuple(entry.text for entry in library.experiences), sent, injected)
