"""Two hundred clients at once, each an app with a canary: through the proxy, training, and the next request's block.

The apps share four sets, of which two are trained. Everybody asks the same at first and is answered the same, so that
only keys tell them apart. The optimizer makes a lesson of every canary that it reads, and one of a word that all apps
of a set say.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.programs import call, running
from tests.tfgrpo.scripted import JSON, Reply, sections, serving, stage
from tests.tfgrpo.test_main import result, url
from tests.upstreams import PATIENCE, RawUpstream, Seen, Step, answer, completion, streamed
from tfgrpo.store import Store

CLIENTS = 200
WORDS = ("granite", "marble", "basalt", "quartz")
"""One that each set's apps say, and no other's."""
TRAINED = 2
CANARY = re.compile(r"canary\d{4}k|Zan[a-z]{3}")


@dataclass(frozen=True, slots=True)
class Client:
    number: int
    heard: list[str] = field(default_factory=list)
    """What it was answered."""

    @property
    def set_name(self) -> str:
        return f"set-{self.number % len(WORDS)}"

    @property
    def word(self) -> str:
        return WORDS[self.number % len(WORDS)]

    @property
    def canaries(self) -> set[str]:
        letters = "".join(chr(ord("a") + self.number // 26**place % 26) for place in range(3))
        return {f"canary{self.number:04}k", f"Zan{letters}"}

    @property
    def key(self) -> str:
        return f"key-of-app-{self.number}"


def upstream(seen: Seen) -> Iterator[Step]:
    """Answer everybody alike, then with what the caller says it is; as a stream where that is asked for."""
    asked = seen.json["messages"][-1]["content"]
    said = "I see." if asked == "What now?" else f"Dear {seen.headers['x-canaries']}:"
    said = f"{said} Take way {seen.headers['x-way']}."
    name = f"c-{seen.connection}-{seen.at}"
    if seen.json.get("stream"):
        yield from streamed(said, id_=name)
    else:
        yield answer(completion(said, id_=name))


def chat(port: int, client: Client, messages: list[JSON], way: str = "0") -> tuple[str, str]:
    """Ask, every second client for a stream; return the answer's text and the id of the exchange."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=3 * PATIENCE)
    body = {"model": "m", "messages": messages, "stream": client.number % 8 > 3}
    headers = {
        "authorization": f"Bearer {client.key}",
        "x-canaries": " and ".join(sorted(client.canaries)),
        "x-way": way,
    }
    try:
        line.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        response = line.getresponse()
        raw = response.read().decode()
        assert response.status == 200, raw
    finally:
        line.close()
    client.heard.append(raw)
    if not body["stream"]:
        said = json.loads(raw)["choices"][0]["message"]["content"]
    else:
        events = [json.loads(one[6:]) for one in raw.split("\n\n") if one.startswith("data: {")]
        said = "".join(filter(None, (one["choices"][0]["delta"].get("content") for one in events)))
    return said, response.headers["x-tfgrpo-exchange"]


def converse(port: int, client: Client) -> None:
    """Make both rollouts of a task, of two turns each, and label them."""
    labels = []
    for value in (1.0, 0.0):
        asked: list[JSON] = [{"role": "user", "content": "What now?"}]
        said, _ = chat(port, client, asked, str(value))
        more = f"Thanks, {client.word} it is, for {' and '.join(sorted(client.canaries))}."
        history = [*asked, {"role": "assistant", "content": said}, {"role": "user", "content": more}]
        _, exchange = chat(port, client, history, str(value))
        labels.append({"exchange_id": exchange, "value": value})
    call(port, "POST", "/v1/feedback", labels, authorization=f"Bearer {client.key}")


def at_once(clients: list[Client], act: Callable[[Client], object]) -> None:
    """Let all clients begin together, and wait for the last."""
    start = threading.Barrier(len(clients))

    def begin(client: Client) -> None:
        start.wait(PATIENCE)
        act(client)

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(begin, clients))


def greedy(request: JSON) -> Reply:
    """Make a lesson of every canary and of the set's word."""
    said = sections(request)
    if stage(request) == "contrast":
        found = sorted(set(CANARY.findall(said)))
        lessons = [f"Mention {one} first." for one in found]
        lessons += [f"Say {word} in each answer." for word in WORDS if word in said]
        return json.dumps({"analysis": "", "lessons": lessons})
    if stage(request) == "propose":
        texts = re.findall(r"^- (.+)$", said, re.MULTILINE)
        return json.dumps({"operations": [{"operation": "add", "ids": [], "text": one, "why": "w"} for one in texts]})
    if stage(request) == "consolidate":
        return json.dumps({"operations": [json.loads(line) for line in said.splitlines() if line.startswith("{")]})
    return said


@dataclass(frozen=True, slots=True)
class Lived:
    """What came of it all."""

    clients: list[Client]
    sent: dict[int, list[str]]
    """The bodies that reached the upstream after training, by client: what was injected stands in them."""
    optimizer: dict[str, list[str]]
    """What the optimizer was sent, by set."""
    home: Path


async def trained(home: Path, port: int) -> dict[str, list[str]]:
    """Train the sets and deploy what was learned."""
    sent: dict[str, list[str]] = {}
    for number in range(TRAINED):
        name = f"set-{number}"
        async with serving(greedy) as endpoint:
            told = await result(home, "train", "--set", name, endpoint=endpoint)
            sent[name] = [sections(request) for request in endpoint.requests]
        wanted = {"live": told["version"], "reason": "test"}
        await asyncio.to_thread(call, port, "PUT", f"/admin/api/sets/{name}/deployment", wanted)
    return sent


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    home = tmp_path_factory.mktemp("canaries")
    (home / "data").mkdir()
    clients = [Client(number) for number in range(CLIENTS)]
    with ExitStack() as stack:
        provider = stack.enter_context(RawUpstream(upstream))
        settings: dict[str, Any] = {
            "server": {"port": 0},
            "upstreams": [{"name": "up", "base_url": provider.base_url}],
            "apps": [
                {"name": f"app-{one.number}", "keys": [one.key], "sets": [one.set_name], "teaches": True}
                for one in clients
            ],
            "training": {"lessons": 3, "edits": None, "batch_size": CLIENTS, "concurrency": 32},
        }
        (home / "config.yaml").write_text(json.dumps(settings))
        port = stack.enter_context(running(home / "config.yaml", url(home), 1))
        at_once(clients, lambda client: converse(port, client))
        optimizer = asyncio.run(trained(home, port))
        before = len(provider.seen)
        at_once(clients, lambda client: chat(port, client, [{"role": "user", "content": "And next?"}]))
        sent: dict[int, list[str]] = {}
        for seen in provider.seen[before:]:
            found = re.search(r"canary(\d{4})k", seen.headers["x-canaries"])
            assert found is not None
            sent.setdefault(int(found.group(1)), []).append(seen.body.decode())
    return Lived(clients, sent, optimizer, home)


def test_each_client_is_answered_with_its_own_canary_and_no_other(lived: Lived) -> None:
    for client in lived.clients:
        assert len(client.heard) == 5
        found = [set(CANARY.findall(said)) for said in client.heard]
        assert found == [set(), client.canaries, set(), client.canaries, client.canaries]


def test_each_trajectory_is_of_one_client(lived: Lived) -> None:
    store = Store.open(url(lived.home))
    try:
        for client in lived.clients:
            name = f"app-{client.number}"
            rows = store.traffic.page(limit=50, app=name)
            bodies = store.traffic.bodies([one.id for one in rows])
            assert sorted(Counter(one.trajectory for one in rows).values()) == [1, 2, 2]
            for kept in bodies.values():
                assert set(CANARY.findall((kept.request + kept.response).decode())) <= client.canaries
    finally:
        store.close()


def test_a_set_is_taught_by_its_own_apps_alone_and_by_one_at_a_time(lived: Lived) -> None:
    for name, sent in lived.optimizer.items():
        own = {canary for one in lived.clients if one.set_name == name for canary in one.canaries}
        assert set(CANARY.findall("\n".join(sent))) == own
        studied = [said for said in sent if "<rollout" in said]
        assert studied
        assert all(len(set(CANARY.findall(said))) <= 2 for said in studied)


def test_nothing_injected_holds_a_canary_or_a_word_of_another_set(lived: Lived) -> None:
    assert len(lived.sent) == CLIENTS
    for client in lived.clients:
        (body,) = lived.sent[client.number]
        assert not CANARY.findall(body)
        taught = client.set_name in lived.optimizer
        assert [word for word in WORDS if word in body] == ([client.word] if taught else [])
