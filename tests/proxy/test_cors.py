from __future__ import annotations

import pytest

from tests.conftest import Answered, RunningProxy, StartProxy, StartUpstream
from tests.upstreams import answer, completion

PAGE = "https://app.example"
APPS = [{"name": "shop", "keys": ["sk-shop"]}]
THEIRS = [("access-control-allow-origin", "https://theirs.example"), ("x-request-id", "r1"), ("x-ratelimit-limit", "9")]


def preflight(proxy: RunningProxy, origin: str = PAGE, path: str = "/v1/chat/completions") -> Answered:
    sent = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os",
    }
    return proxy.request("OPTIONS", path, None, sent)


def on(start_proxy: StartProxy, upstream: str | None = None, *origins: str) -> RunningProxy:
    return start_proxy(upstream, server={"cors_origins": origins or (PAGE,), "max_body_bytes": 2000}, apps=APPS)


def test_a_preflight_is_answered_before_a_key_is_asked_for(start_proxy: StartProxy) -> None:
    answered = preflight(on(start_proxy))
    assert (answered.status, answered.body) == (204, b"")
    assert answered.headers["access-control-allow-origin"] == PAGE
    assert answered.headers["access-control-allow-headers"] == "authorization,content-type,x-stainless-os"
    assert "POST" in answered.headers["access-control-allow-methods"]
    assert int(answered.headers["access-control-max-age"]) > 0
    assert ("vary", "Origin") in answered.raw_headers


def test_a_preflight_of_another_origin_is_refused(start_proxy: StartProxy) -> None:
    answered = preflight(on(start_proxy), "https://other.example")
    assert (answered.status, "access-control-allow-origin" in answered.headers) == (403, False)
    assert answered.json["error"]["code"] == "origin_not_allowed"


def test_an_answer_has_our_headers_in_place_of_the_upstreams(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [answer(completion(), headers=THEIRS)])
    answered = on(start_proxy, upstream.base_url).chat(headers={"origin": PAGE, "authorization": "Bearer sk-shop"})
    allowed = [value for name, value in answered.raw_headers if name == "access-control-allow-origin"]
    exposed = answered.headers["access-control-expose-headers"].split(", ")
    assert (answered.status, allowed) == (200, [PAGE])
    assert {"x-request-id", "x-ratelimit-limit", "x-tfgrpo-exchange", "x-tfgrpo-set"} <= set(exposed)
    assert answered.headers["access-control-allow-credentials"] == "true"


def test_any_origin_may_not_send_credentials(start_proxy: StartProxy) -> None:
    answered = preflight(on(start_proxy, None, "*"), "https://other.example")
    assert answered.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answered.headers


@pytest.mark.parametrize(
    ("path", "key", "size", "status"),
    [
        ("/v1/chat/completions", "wrong", 2, 401),
        ("/nowhere", "sk-shop", 2, 404),
        ("/v1/chat/completions", "sk-shop", 3000, 413),
        ("/v1/chat/completions", "sk-shop", 2, 502),
        ("/v1/feedback", "wrong", 2, 401),
    ],
)
def test_a_refusal_can_be_read_by_the_page(
    start_proxy: StartProxy, path: str, key: str, size: int, status: int
) -> None:
    proxy = on(start_proxy, "http://127.0.0.1:1/v1")
    answered = proxy.request("POST", path, b" " * size, {"origin": PAGE, "authorization": f"Bearer {key}"})
    assert (answered.status, answered.headers["access-control-allow-origin"]) == (status, PAGE)


def test_an_answer_to_nobody_in_particular_still_varies(start_proxy: StartProxy) -> None:
    answered = on(start_proxy).request("GET", "/status")
    assert (answered.headers["vary"], "access-control-allow-origin" in answered.headers) == ("Origin", False)


@pytest.mark.parametrize("method", ["OPTIONS", "GET"])
def test_the_control_plane_has_none(start_proxy: StartProxy, method: str) -> None:
    sent = {"origin": PAGE, "access-control-request-method": "POST"}
    answered = on(start_proxy, None, "*").request(method, "/admin/api/sets", None, sent)
    assert not [name for name in answered.headers if name.startswith("access-control")]


def test_off_options_is_relayed_and_the_upstreams_headers_pass(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(lambda _: [answer(b"", headers=THEIRS)])
    answered = preflight(start_proxy(upstream.base_url))
    assert upstream.wait_seen().line.startswith("OPTIONS /v1/chat/completions ")
    assert answered.headers["access-control-allow-origin"] == "https://theirs.example"
