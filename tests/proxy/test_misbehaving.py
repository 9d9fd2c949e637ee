"""What a client sees of an upstream, well or badly behaved, is the same direct and through the proxy."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from proxy.settings import Settings
from tests.conftest import RunningProxy
from tests.misbehaving import ENCODERS, MODES, SMILE, Mode, cut, plain_stream
from tests.raw_client import BODY
from tests.upstreams import PATIENCE, RawUpstream, Seen, Step, answer, chunk, chunked_head, completion
from tfgrpo.dialects import by_name, decoded
from tfgrpo.store import Store

_HOPS = ("connection", "transfer-encoding", "keep-alive")

Sight = tuple[int, list[tuple[str, str]], bytes, Literal["whole", "broken"]]
"""Status, end-to-end headers, body and how it ended."""


class Line:
    """One upstream whose next answer is set, and one proxy before it, for all tests of this file."""

    def __init__(self, folder: Path) -> None:
        self.steps: tuple[Step, ...] = ()
        self.upstream = RawUpstream(self._next)
        store = {"url": f"sqlite:///{folder / 'store.db'}"}
        up = [{"name": "up", "base_url": self.upstream.base_url}]
        self.proxy = RunningProxy(
            Settings.model_validate({"store": store, "upstreams": up, "server": {"port": 0, "drain_seconds": 5}})
        )

    def _next(self, _: Seen) -> tuple[Step, ...]:
        return self.steps


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    made = Line(tmp_path_factory.mktemp("line"))
    with made.upstream:
        made.proxy.start()
        yield made
        made.proxy.stop()


def look(port: int, body: bytes = BODY, headers: dict[str, str] | None = None) -> tuple[Sight, str]:
    """Ask once; return what is seen, and the id of the exchange."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    client.request("POST", "/v1/chat/completions", body, {"content-type": "application/json", **(headers or {})})
    response = client.getresponse()
    got, ended = b"", False
    try:
        while piece := response.read1(65536):
            got += piece
        ended = not response.length
    except (http.client.IncompleteRead, ConnectionError):
        ended = False
    finally:
        client.close()
    named = [(name.lower(), value) for name, value in response.getheaders()]
    kept = [pair for pair in named if pair[0] not in _HOPS and not pair[0].startswith("x-tfgrpo-")]
    return (response.status, kept, got, "whole" if ended else "broken"), dict(named).get("x-tfgrpo-exchange", "")


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_client_sees_the_same_direct_and_through_the_proxy(line: Line, mode: Mode) -> None:
    line.steps = mode.steps
    direct, _ = look(line.upstream.port)
    through, _ = look(line.proxy.port)
    assert through == direct


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str | None]]:
    """Outcome and assembled answer of each mode, as recorded by a proxy that saw all of them."""
    made = Line(tmp_path_factory.mktemp("records"))
    ids = {}
    with made.upstream:
        made.proxy.start()
        for name, mode in MODES.items():
            made.steps = mode.steps
            ids[name] = look(made.proxy.port)[1]
        made.proxy.stop()
    store = Store.open(made.proxy.settings.store.url)
    try:
        return {name: _record(store, exchange_id) for name, exchange_id in ids.items()}
    finally:
        store.close()


def _record(store: Store, exchange_id: str) -> tuple[str, str | None]:
    exchange, bodies = store.traffic.exchange(exchange_id), store.traffic.bodies([exchange_id])[exchange_id]
    dialect, plain = by_name("chat"), decoded(bodies.response, bodies.response_encoding)
    assert exchange is not None
    assert dialect is not None
    assert plain is not None
    response = dialect.read_response(plain, bodies.response_type)
    return exchange.outcome, response.choices[0].message.text if response is not None and response.choices else None


@pytest.mark.parametrize("name", MODES)
def test_the_record_says_how_it_ended_and_what_was_said(records: dict[str, tuple[str, str | None]], name: str) -> None:
    outcome, text = records[name]
    assert outcome == MODES[name].outcome
    assert MODES[name].text in (None, text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_wherever_a_stream_is_cut_it_arrives_whole(line: Line, end: str) -> None:
    whole = plain_stream(SMILE[:3], end)
    for at in range(len(whole) + 1):
        line.steps = cut(whole, at)
        assert look(line.proxy.port)[0][2:] == (whole, "whole"), at


_LENGTH = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{"choices":[1,2]}'
_CHUNKS = chunked_head() + chunk(b'data: {"a":1}\n\n') + chunk(b"data: [DONE]\n\n") + chunk(b"")


@pytest.mark.parametrize("whole", [_LENGTH, _CHUNKS], ids=["length", "chunks"])
def test_wherever_an_answer_is_cut_off_it_never_looks_whole(line: Line, whole: bytes) -> None:
    head = whole.index(b"\r\n\r\n") + 4
    line.steps = (whole,)
    body = look(line.proxy.port)[0][2]
    for at in range(1, len(whole)):
        line.steps = (whole[:at], "close")
        status, _, got, ended = look(line.proxy.port)[0]
        assert (status, ended) == ((502, "whole") if at < head else (200, "broken")), at
        assert at < head or body.startswith(got), at


@pytest.mark.parametrize("framed", ["length", "chunks"])
def test_twenty_megabytes_cross_both_ways(line: Line, framed: str) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % (b"0123456789abcdef" * (20 << 16))
    in_chunks = (chunked_head(), *(chunk(body[at : at + 999_999]) for at in range(0, len(body), 999_999)), chunk(b""))
    line.steps = (answer(body),) if framed == "length" else in_chunks
    (status, _, got, ended), _ = look(line.proxy.port, body)
    assert (status, ended) == (200, "whole")
    assert got == body
    assert line.upstream.seen[-1].body == body


@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_compressed_request_arrives_as_it_was(line: Line, encoding: str) -> None:
    line.steps = (answer(completion()),)
    packed = ENCODERS[encoding](BODY)
    look(line.proxy.port, packed, {"content-encoding": encoding})
    seen = line.upstream.seen[-1]
    assert (seen.body, seen.headers["content-encoding"]) == (packed, encoding)
