"""Whatever a client sends, and whatever it is answered: both are the same direct and through the proxy.

What the promise leaves out is taken out of what was sent direct, by rules written here anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.settings import Settings
from tests.conftest import RunningProxy
from tests.proxy.test_injection_properties import APIS, Api
from tests.raw_client import RawAnswer, asked
from tests.upstreams import RawUpstream, Seen, Step, chunk
from tfgrpo.library import BLOCK_END, BLOCK_START

Headers = list[tuple[bytes, bytes]]

LESSON: Final = 'Say "é" \\ first.'

_TOKEN: Final = "!#$%&'*+-.^_`|~019abyzABYZ"
_OF_ONE_LINE: Final = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
                       "te", "trailer", "transfer-encoding", "upgrade", "content-length"}  # fmt: skip
_KEPT_HERE: Final = _OF_ONE_LINE | {"host", "expect", "cookie", "forwarded", "x-real-ip", "http2-settings"}
_PREFIXES: Final = (b"x-forwarded-", b"x-tfgrpo-")
_CREDENTIALS: Final = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")

# Longest first: what may stand around the block where it was put in, and what was there before.
_AROUND: Final = [
    (b',{"type":"text","text":"%s"}', b""),
    (b'{"type":"text","text":"%s"}', b""),
    (b'{"role":"system","content":"%s"},', b""),
    (b'"instructions":"%s",', b""),
    (b'"system":"%s",', b""),
    (b'"%s"', b"null"),
    (b"\\n\\n%s", b""),
    (b"%s\\n\\n", b""),
    (b"%s", b""),
]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, and how its body is framed: None has none, a number is the size of its chunks, 0 a length."""

    method: str
    target: str
    headers: Headers
    body: bytes
    framed: int | None

    def raw(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1".encode(), b"hOsT: x"]
        lines += [name + b": " + value for name, value in self.headers]
        body = self.body
        if self.framed is None:
            body = b""
        elif self.framed == 0:
            lines.append(b"content-length: %d" % len(body))
        else:
            lines.append(b"transfer-encoding: chunked")
            body = _chunked(body, self.framed)
        return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _chunked(body: bytes, size: int) -> bytes:
    return b"".join(chunk(body[at : at + size]) for at in range(0, len(body), size)) + chunk(b"")


class Pair:
    """One upstream whose next answer is set, and one proxy before it, with a lesson in the set `s`."""

    def __init__(self, folder: Path) -> None:
        self.steps: list[Step] = []
        self.upstream = RawUpstream(lambda _: self.steps)
        values = {
            "store": {"url": f"sqlite:///{folder / 'store.db'}"},
            "upstreams": [{"name": "up", "base_url": self.upstream.base_url}],
            "server": {"port": 0, "drain_seconds": 5},
        }
        self.proxy = RunningProxy(Settings.model_validate(values))

    def compare(self, sent: bytes) -> tuple[RawAnswer, Seen, RawAnswer, Seen]:
        """Send the same both ways; return answer and arrival, first direct, then through the proxy."""
        before = len(self.upstream.seen)
        direct = asked(self.upstream.port, sent)
        through = asked(self.proxy.port, sent)
        assert len(self.upstream.seen) == before + 2, through
        first, second = self.upstream.seen[-2:]
        return direct, first, through, second


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"))
    with made.upstream:
        made.proxy.start()
        made.proxy.deploy("s", LESSON)
        yield made
        made.proxy.stop()


def _few(examples: int) -> settings:
    """The same examples in each run, over sockets: no time is kept."""
    unchecked = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=unchecked
    )


_bytes = st.sampled_from([bytes([one]) for one in (*range(0x21, 0x7F), *range(0x80, 0x100))])
_odd_value = st.lists(_bytes | st.sampled_from([b" ", b"\t", b", "]), max_size=9).map(
    lambda all_: b"".join(all_).strip()
)
_utf8_value = st.text('aé😀, "=;', max_size=9).map(lambda text: text.strip().encode())
_odd_name = st.text(_TOKEN, min_size=1, max_size=6).map(lambda name: b"x" + name.encode())


def _headers(value: st.SearchStrategy[bytes], *known: tuple[bytes, bytes]) -> st.SearchStrategy[Headers]:
    """Any headers in any order, doublets among them, and some whose meaning is known."""
    odd = st.tuples(_odd_name | st.sampled_from([b"X-Twice", b"x-twice", b"x-hop"]), value)
    return st.lists(odd | st.sampled_from(known), max_size=8)


_KNOWN: Final = (
    (b"Authorization", b"Bearer sk-1"), (b"authorization", b"Bearer sk-2"), (b"X-API-Key", b"k"), (b"api-key", b"k2"),
    (b"x-goog-api-key", b"g"), (b"Cookie", b"a=b"), (b"TE", b"trailers"), (b"keep-alive", b"3"), (b"Trailer", b"x-t"),
    (b"connection", b"X-Hop, keep-alive"), (b"connection", b"keep-alive"), (b"x-forwarded-for", b"1.2.3.4"),
    (b"Forwarded", b"for=x"), (b"x-real-ip", b"::1"), (b"Expect", b"100-continue"), (b"proxy-authorization", b"p"),
    (b"accept-encoding", b"br;q=0.1, *"), (b"accept", b"*/*"), (b"user-agent", b""), (b"content-type", b"text/odd"),
    (b"Content-Type", b"application/json"), (b"content-encoding", b"x-own"), (b"x-session-id", b"s 1"),
    (b"traceparent", b"00-a-b-01"), (b"idempotency-key", b"i"), (b"x-stainless-retry-count", b"0"), (b"date", b"never"),
)  # fmt: skip

_ANSWERED: Final = (
    (b"Set-Cookie", b"a=b"), (b"set-cookie", b"c=d"), (b"Connection", b"x-hop"), (b"keep-alive", b"5"),
    (b"content-encoding", b"gzip"), (b"server", b"s"), (b"date", b"never"), (b"x-tfgrpo-set", b"theirs"),
    (b"proxy-authenticate", b"p"), (b"x-request-id", b"r"), (b"retry-after", b"1"), (b"location", b"/x"),
)  # fmt: skip

_segment = st.lists(
    st.sampled_from([*"ab.~-_!$&'()*+,;=:@|", "%20", "x%2Fy", "%C3%A9", "%ff", "%25"]), min_size=1, max_size=5
).map(lambda parts: "s" + "".join(parts))
_READ: Final = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/completions")
_path = st.sampled_from([*_READ, "/v1/models"]) | st.tuples(
    st.lists(_segment, min_size=1, max_size=3), st.sampled_from(["", "/"])
).map(lambda drawn: "/v1/" + "/".join(drawn[0]) + drawn[1])
_query = st.sampled_from(["", "?", "??", "?&&", "?="]) | st.text("a=&%?/+;:@|[]{}'", max_size=8).map("?{}".format)
_body = st.binary(max_size=200) | st.sampled_from([b"", b'{"model":"m","messages":[]}', b"{", b"x" * 70_000])


@st.composite
def _requests(draw: st.DrawFn) -> Sent:
    method = draw(st.sampled_from(["POST", "POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]))
    framed = draw(st.sampled_from([None, 0, 0, 7, 65536]))
    # Whatever is streamed up, and HEAD, takes a way on which headers must be UTF-8 and a lone `?` is lost (both said).
    path, query = draw(_path), draw(_query)
    plain = method != "HEAD" and (framed is None or (method == "POST" and path in _READ))
    value = _odd_value | _utf8_value if plain else _utf8_value
    query = "" if query == "?" and not plain else query
    return Sent(method, path + query, draw(_headers(value, *_KNOWN)), draw(_body), framed)


@st.composite
def _exchanges(draw: st.DrawFn) -> tuple[Sent, list[Step]]:
    sent = draw(_requests())
    status = draw(st.sampled_from([200, 201, 204, 299, 304, 400, 401, 404, 418, 429, 500, 503, 529, 599]))
    lines = [name + b": " + value for name, value in draw(_headers(_odd_value | _utf8_value, *_ANSWERED))]
    body = draw(st.binary(max_size=99))
    size = draw(st.sampled_from([-1, 0, 0, 5]))
    if size > 0:
        lines.append(b"Transfer-Encoding: chunked")
        body = _chunked(body, size)
    elif size == 0:
        lines.append(b"Content-Length: %d" % len(body))
    else:
        lines.append(b"Connection: close")
    bodiless = sent.method == "HEAD" or status in (204, 304)
    head = b"HTTP/1.1 %d Odd reason\r\n%s\r\n\r\n" % (status, b"\r\n".join(lines))
    steps: list[Step] = [head if bodiless else head + body]
    return sent, [*steps, "close"] if size < 0 else steps


def _end_to_end(headers: Headers, here: set[str], prefixes: tuple[bytes, ...]) -> Headers:
    named = {one.strip().lower() for name, value in headers if name == b"connection" for one in value.split(b",")}
    dropped = named | {name.encode() for name in here}
    return [(name, value) for name, value in headers if name not in dropped and not name.startswith(prefixes)]


def _arrived(seen: Seen) -> Headers:
    """What came through, but for framing, which is made anew."""
    return [pair for pair in seen.raw_headers if pair[0] not in (b"host", b"content-length", b"transfer-encoding")]


def _upward(seen: Seen) -> Headers:
    """What the promise leaves of the headers that arrived."""
    kept = _end_to_end(seen.raw_headers, _KEPT_HERE, _PREFIXES)
    shown = next((name for name in _CREDENTIALS if dict(kept).get(name)), None)
    # The last of several counts, as in a body.
    at = kept.index((shown, dict(kept)[shown])) if shown is not None else None
    return [pair for i, pair in enumerate(kept) if pair[0] not in _CREDENTIALS or i == at]


def _returned(answer: RawAnswer) -> tuple[int, Headers, bytes]:
    """What a client was answered, but for framing and our own marks."""
    framing = (b"connection", b"content-length", b"transfer-encoding")
    kept = [(name, value) for name, value in answer.headers if name not in framing]
    return answer.status, [pair for pair in kept if not pair[0].startswith(b"x-tfgrpo-")], answer.body


def _downward(answer: RawAnswer) -> tuple[int, Headers, bytes]:
    kept = _end_to_end(answer.headers, _OF_ONE_LINE, (b"x-tfgrpo-",))
    return answer.status, kept, answer.body


@_few(150)
@given(exchange=_exchanges())
def test_any_request_and_any_answer_cross_as_they_are(pair: Pair, exchange: tuple[Sent, list[Step]]) -> None:
    sent, pair.steps = exchange
    direct, first, through, second = pair.compare(sent.raw())
    assert (second.line, second.body) == (first.line, first.body)
    assert _arrived(second) == _upward(first)
    assert _returned(through) == _downward(direct)


def _taken_out(body: bytes, block: bytes) -> list[bytes]:
    """The bodies that this one may have been, before the block was put in."""
    return [body.replace(around % block, before) for around, before in _AROUND]


def _block(body: bytes) -> bytes:
    start, stop = body.index(BLOCK_START.encode()), body.index(BLOCK_END.encode()) + len(BLOCK_END)
    return body[start:stop]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
@_few(25)
@given(data=st.data())
def test_a_request_with_lessons_is_the_same_but_for_them(pair: Pair, api: Api, data: st.DataObject) -> None:
    path = {"chat": "chat/completions"}.get(api.name, api.name)
    body = data.draw(api.requests)
    headers = [*data.draw(_headers(_utf8_value, *_KNOWN[:-13])), (b"X-TFGRPO-Set", b"s")]
    sent = Sent("POST", f"/v1/{path}?a=%2F", headers, body, data.draw(st.sampled_from([0, 9])))
    pair.steps = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"]
    _, first, through, second = pair.compare(sent.raw())
    assert dict(through.headers)[b"x-tfgrpo-set"] == b"s@1"
    assert (second.line, _arrived(second)) == (first.line, _upward(first))
    assert first.body in _taken_out(second.body, _block(second.body))
    assert json.loads(b'"%s"' % _block(second.body)).split("\n")[1] == LESSON
