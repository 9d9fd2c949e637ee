"""Clients beside each other: nothing of one reaches another, and what they leave behind is nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.raw_client import BODY, asked, posted, read_until
from tests.upstreams import Seen, Step, answer, chat, chunk, chunked_head, completion, event
from tfgrpo.store import Store

CLIENTS = 100


def _sent(canary: str) -> bytes:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": canary}]})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {canary}\r\nx-mine: {canary}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


def _said(proxy: RunningProxy, canary: str) -> tuple[bytes, str]:
    answered = asked(proxy.port, _sent(canary))
    return answered.body, dict(answered.headers)[b"x-tfgrpo-exchange"].decode()


def test_nothing_of_a_client_reaches_another(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(chat)
    proxy = start_proxy(upstream.base_url)
    canaries = [f"canary-{number:04}" for number in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS // 4) as pool:
        said = list(pool.map(lambda canary: _said(proxy, canary), canaries))
    proxy.stop()
    sent = [seen.head + seen.body for seen in upstream.seen]
    with closing(Store.open(proxy.settings.store.url)) as store:
        kept = store.traffic.bodies([id_ for _, id_ in said])
    for canary, (body, id_) in zip(canaries, said, strict=True):
        own = canary.encode()
        assert [own in one for one in sent].count(True) == 1
        for seen in (body, kept[id_].request + kept[id_].response, *(one for one in sent if own in one)):
            assert own in seen
            assert seen.count(b"canary-") == seen.count(own)


def test_the_same_question_of_two_clients_is_asked_twice(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    numbers = iter("12")

    def counting(_: Seen) -> Iterator[Step]:
        yield answer(completion(next(numbers)))

    proxy = start_proxy(start_upstream(counting).base_url)
    said = [proxy.chat("same", {"authorization": f"Bearer {key}"}) for key in ("one", "two")]
    assert [one.json["choices"][0]["message"]["content"] for one in said] == ["1", "2"]


def test_streams_that_were_left_keep_no_connection(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [chunked_head(), chunk(event("1")), "hold"])
    proxy = start_proxy(upstream.base_url)

    def leave(count: int) -> int:
        for _ in range(count):
            with posted(proxy.port, BODY) as line:
                read_until(line, b"data: 1")
        upstream.wait_until_closed(len(upstream.seen))
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    leave(5)
    assert leave(200) - leave(5) < 10


def test_the_parts_of_a_form_cross_as_they_are(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    upstream = start_upstream(lambda _: [answer({"text": "heard"})])
    proxy = start_proxy(upstream.base_url)
    form = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n\x00\xff\r\n--bound "model" \r\n'
    )
    form += b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n--b--\r\n'
    proxy.request("POST", "/v1/audio/transcriptions", form, {"content-type": 'multipart/form-data; Boundary="b"'})
    seen = upstream.wait_seen()
    assert (seen.body, seen.headers["content-type"]) == (form, 'multipart/form-data; Boundary="b"')
