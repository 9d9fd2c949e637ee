"""Requests that name what an upstream made go to that upstream, though no model in them says so."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.auth import Identity
from proxy.calls import Call
from proxy.origins import Origins, made, named
from proxy.routing import Route, Upstream
from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.proxy.apis import speaks
from tests.proxy.examples import exchange, store
from tests.upstreams import PATIENCE, RawUpstream, Seen, Step, answer, chunk, chunked_head
from tfgrpo.store import Batch
from tfgrpo.types import Bodies, Request

JSON = {"content-type": "application/json", "authorization": "Bearer sk-client"}


class Two:
    """A proxy in front of two upstreams. `local` is the first, and takes what nothing else decides."""

    def __init__(self, start_proxy: StartProxy, local: RawUpstream, paid: RawUpstream, **sections: Any) -> None:
        self.local, self.paid = local, paid
        self._start, self._sections = start_proxy, sections
        self.proxy = self.start()

    def start(self) -> RunningProxy:
        """Start the proxy, or another one on the same store."""
        upstreams = [
            {"name": "local", "base_url": self.local.base_url, "models": ["qwen*", "shared"]},
            {"name": "paid", "base_url": self.paid.base_url, "models": ["gpt-*", "shared"]},
        ]
        return self._start(None, upstreams=upstreams, **self._sections)

    def send(self, method: str, path: str, body: dict[str, Any] | None = None, key: str = "sk-client") -> Any:
        headers = {**JSON, "authorization": f"Bearer {key}"} if body is not None else {"authorization": f"Bearer {key}"}
        return self.proxy.request(method, path, body, headers).json

    def respond(self, **more: Any) -> str:
        """Have `paid` make a response."""
        id_: str = self.send("POST", "/v1/responses", {"model": "gpt-5", "input": "2+2?", **more})["id"]
        return id_

    def seen(self) -> dict[str, list[str]]:
        return {name: [one.line[:-9] for one in getattr(self, name).seen] for name in ("local", "paid")}


def _makes(seen: Seen) -> Iterator[Step]:
    """Speaks the APIs that are read; a POST to another collection makes a thing, all else is answered 200."""
    if seen.target in ("/v1/responses", "/v1/chat/completions"):
        yield from speaks(seen)
    elif seen.line.startswith("POST "):
        yield answer({"id": f"{seen.target.split('/')[2]}-{int(seen.at * 1e6)}", "object": "thing"})
    else:
        yield answer({"object": "thing"})


@pytest.fixture
def two(start_proxy: StartProxy, start_upstream: StartUpstream) -> Two:
    return Two(start_proxy, start_upstream(_makes), start_upstream(_makes))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses/ID"),
        ("GET", "/v1/responses/ID?stream=true"),
        ("POST", "/v1/responses/ID/cancel"),
        ("DELETE", "/set/math/v1/responses/ID"),
        ("GET", "/v1/responses/ID/input_items"),
    ],
)
def test_a_response_is_looked_after_where_it_was_made(two: Two, method: str, path: str) -> None:
    asked = path.replace("ID", two.respond())
    two.send(method, asked)
    assert two.seen() == {"local": [], "paid": ["POST /v1/responses", f"{method} {asked.removeprefix('/set/math')}"]}


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_stored_completion_is_looked_after_where_it_was_made(two: Two, method: str) -> None:
    asked = {"model": "gpt-5", "store": True, "messages": [{"role": "user", "content": "2+2?"}]}
    path = f"/v1/chat/completions/{two.send('POST', '/v1/chat/completions', asked)['id']}"
    two.send(method, path)
    assert two.seen()["paid"][1:] == [f"{method} {path}"]


def test_a_next_turn_without_a_model_goes_where_the_last_one_was(two: Two) -> None:
    previous = two.respond()
    two.send("POST", "/v1/responses", {"previous_response_id": previous, "input": "and 3+3?"})
    assert [len(requests) for requests in two.seen().values()] == [0, 2]


def test_of_the_upstreams_that_take_the_model_the_one_with_the_last_turn_is_asked(two: Two) -> None:
    previous = two.respond()
    two.send("POST", "/v1/responses", {"previous_response_id": previous, "input": "and 3+3?", "model": "shared"})
    assert [len(requests) for requests in two.seen().values()] == [0, 2]


def test_a_model_that_one_upstream_takes_decides_alone(two: Two) -> None:
    previous = two.respond()
    two.send("POST", "/v1/responses", {"previous_response_id": previous, "input": "and 3+3?", "model": "qwen3"})
    assert [len(requests) for requests in two.seen().values()] == [1, 1]


def test_a_path_that_names_its_upstream_decides_alone(two: Two) -> None:
    two.send("GET", f"/local/v1/responses/{two.respond()}")
    assert [len(requests) for requests in two.seen().values()] == [1, 1]


def test_a_file_a_batch_of_it_and_a_thread_stay_where_the_first_was_made(two: Two) -> None:
    file = two.proxy.request("POST", "/paid/v1/files", b"--b--", {"content-type": "multipart/form-data"}).json["id"]
    two.send("GET", f"/v1/files/{file}/content")
    batch = two.send("POST", "/v1/batches", {"input_file_id": file, "endpoint": "/v1/responses"})["id"]
    two.send("POST", f"/v1/batches/{batch}/cancel", {})
    assert two.seen()["local"] == []
    assert len(two.seen()["paid"]) == 4


def test_what_was_made_before_a_start_is_found_in_the_store(two: Two) -> None:
    response, file = two.respond(), two.send("POST", "/paid/v1/files", {"name": "x"})["id"]
    two.proxy.stop()
    two.proxy = two.start()
    two.send("GET", f"/v1/responses/{response}")
    two.send("GET", f"/v1/files/{file}")
    assert two.seen()["local"] == []
    assert [one.note for one in two.proxy.recorded()] == [""] * 4


def test_an_id_that_nobody_knows_goes_to_the_first_upstream_and_the_record_says_so(two: Two) -> None:
    two.send("GET", "/v1/responses/resp_0")
    assert two.seen() == {"local": ["GET /v1/responses/resp_0"], "paid": []}
    (one,) = two.proxy.recorded()
    assert one.note == "no upstream is known to have made resp_0"


@pytest.mark.parametrize(
    ("path", "counts"),
    [("gpt-4o", [0, 1]), ("qwen%2Fsmall", [1, 0]), ("shared", [1, 0]), ("ft:gpt-4o:x::1", [1, 0])],
)
def test_a_model_in_a_path_is_looked_after_by_the_upstream_that_takes_it(
    two: Two, path: str, counts: list[int]
) -> None:
    two.send("GET", f"/v1/models/{path}")
    assert [len(requests) for requests in two.seen().values()] == counts
    assert [one.note for one in two.proxy.recorded()] == [""]


def test_the_end_of_a_client_leaves_its_response_known(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    begun = {"type": "response.created", "response": {"id": "resp_7", "status": "in_progress", "output": []}}
    event = b"event: response.created\ndata: " + json.dumps(begun).encode() + b"\n\n"

    def script(seen: Seen) -> Iterator[Step]:
        if seen.line.startswith("GET"):
            yield answer({"object": "response"})
        else:
            yield from (chunked_head(), chunk(event), "hold")

    two = Two(start_proxy, start_upstream(_makes), start_upstream(script))
    line = http.client.HTTPConnection("127.0.0.1", two.proxy.port, timeout=PATIENCE)
    line.request("POST", "/v1/responses", b'{"model":"gpt-5","stream":true,"input":"hi"}', JSON)
    assert line.getresponse().read(len(event)) == event
    line.close()
    two.paid.wait_closed()
    two.send("GET", "/v1/responses/resp_7")
    assert two.seen()["local"] == []


def test_an_id_of_another_app_leads_nowhere(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    apps = [{"name": "shop", "keys": ["k1"]}, {"name": "desk", "keys": ["k2"]}]
    two = Two(start_proxy, start_upstream(_makes), start_upstream(_makes), apps=apps)
    made_by_shop = two.send("POST", "/v1/responses", {"model": "gpt-5", "input": "2+2?"}, key="k1")["id"]
    two.send("GET", f"/v1/responses/{made_by_shop}", key="k2")
    assert two.seen()["local"] == [f"GET /v1/responses/{made_by_shop}"]
    two.proxy.stop()
    two.proxy = two.start()
    two.send("GET", f"/v1/responses/{made_by_shop}", key="k2")
    assert len(two.seen()["local"]) == 2


def test_with_one_upstream_nothing_is_read_or_asked(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    proxy = start_proxy(start_upstream(_makes).base_url)
    file = proxy.request("POST", "/v1/files", {"name": "x"}, JSON).json["id"]
    proxy.request("GET", f"/v1/files/{file}")
    assert [(one.completion_id, one.note) for one in proxy.recorded()] == [(None, ""), (None, "")]


@pytest.mark.parametrize(
    ("below", "request_", "body", "ids"),
    [
        ("/responses/resp_1/cancel", None, None, ("resp_1",)),
        ("/threads/thread_1/runs/run_2", None, None, ("thread_1", "run_2")),
        ("/fine_tuning/jobs", None, None, ()),
        ("/files", None, b'{"model": null}', ()),
        ("/batches", None, b'{"input_file_id": "file-1"}', ("file-1",)),
        ("/threads/thread_1/runs", None, b'{"assistant_id": "asst_1"}', ("thread_1", "asst_1")),
        ("/batches", None, b'{"input_file_id": 1}', ()),
        ("/responses", Request(None, (), previous_response_id="r1", references=("i1", "i2")), None, ("r1", "i2", "i1")),
        (f"/responses/resp_{'1' * 420}", None, None, (f"resp_{'1' * 420}",)),
        (f"/files/{'1' * 1001}", None, None, ()),
    ],
)
def test_what_a_request_names(below: str, request_: Request | None, body: bytes | None, ids: tuple[str, ...]) -> None:
    assert named(below, request_, body) == ids


@pytest.mark.parametrize(
    ("method", "path", "response", "content_type", "id_"),
    [
        ("POST", "/v1/files", b'{"id": "file-1", "big": 1e999}', "application/json; charset=utf-8", "file-1"),
        ("GET", "/v1/files/1", b'{"id": "file-1"}', "application/json", None),
        ("POST", "/v1/batches/b1/cancel", b'{"id": "b1"}', "application/json", None),
        ("POST", "/v1/audio/speech", b'{"id": "file-1"}', "audio/mpeg", None),
        ("POST", "/v1/files", b'["id", "file-1"]', "application/json", None),
        ("POST", "/v1/files", b'{"id": 7}', "application/json", None),
        ("POST", "/v1/files", b"", "application/json", None),
        ("POST", "/v1/files", b'{"id": "' + b"1" * 65536 + b'"}', "application/json", None),
    ],
)
def test_what_a_request_made(method: str, path: str, response: bytes, content_type: str, id_: str | None) -> None:
    upstream = Upstream("paid", "http://127.0.0.1:1/v1")
    route = Route(None, None, upstream, None, True, None, None, None, None, False)
    call = Call("ex-1", Identity("default", "c"), method, path, route)
    assert made(call, Bodies(response=response, response_type=content_type)) == id_


async def test_memory_is_bounded_and_keeps_what_was_asked_for_last(tmp_path: Path) -> None:
    with contextlib.closing(store(tmp_path)) as kept, contextlib.closing(Origins(kept, size=2)) as origins:
        origins.remember("default", ["r1", "r2"], "paid")
        assert await origins.find("default", ["r1"]) == "paid"
        origins.remember("default", ["r3"], "paid")
        assert [await origins.find("default", [id_]) for id_ in ("r1", "r2", "r3")] == ["paid", None, "paid"]


async def test_of_two_upstreams_with_one_id_the_last_is_meant(tmp_path: Path) -> None:
    with contextlib.closing(store(tmp_path)) as kept, contextlib.closing(Origins(kept, patience=PATIENCE)) as origins:
        both = [
            replace(exchange(f"ex-{at}", completion_id="r1"), upstream=name, started_at=float(at))
            for at, name in ((2, "new"), (1, "old"))
        ]
        kept.traffic.add(Batch(tuple((one, Bodies()) for one in both)))
        assert await origins.find("default", ["r0", "r1"]) == "new"


async def test_a_store_that_fails_or_is_slow_is_not_waited_for(tmp_path: Path) -> None:
    with contextlib.closing(store(tmp_path)) as kept, contextlib.closing(Origins(kept, patience=0.05)) as origins:
        held = threading.Event()
        origins._threads.submit(held.wait, PATIENCE)  # noqa: SLF001 - a store's only thread that does not come back
        async with asyncio.timeout(2):
            assert await origins.find("default", ["r1"]) is None
        held.set()
    with contextlib.closing(store(tmp_path)) as kept, contextlib.closing(Origins(kept, patience=PATIENCE)) as origins:
        with contextlib.closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute("ALTER TABLE exchanges RENAME TO elsewhere")
            assert await origins.find("default", ["r1"]) is None
            other.execute("ALTER TABLE elsewhere RENAME TO exchanges")
        assert await origins.find("default", ["r1"]) is None
