"""Traces and events as a collector receives them, over real sockets, read from the protobuf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.proxy.collector import events, hangs, refuses, seconds_of, spans, takes, told
from tests.upstreams import RawUpstream, chat
from tfgrpo.types import Exchange

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=x"}
CLIENT, SERVER = 3, 2

Traced = Callable[..., RunningProxy]


@pytest.fixture
def upstream(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(chat)


@pytest.fixture
def collector(start_upstream: StartUpstream) -> RawUpstream:
    return start_upstream(takes)


@pytest.fixture
def traced(start_proxy: StartProxy, upstream: RawUpstream, collector: RawUpstream) -> Traced:
    def start(**otlp: Any) -> RunningProxy:
        where = {"endpoint": collector.base_url.removesuffix("/v1"), **otlp}
        return start_proxy(upstream.base_url, telemetry={"otlp": where, "metrics": True})

    return start


def test_an_exchange_is_two_spans_below_the_client_s(
    traced: Traced, upstream: RawUpstream, collector: RawUpstream
) -> None:
    proxy = traced()
    proxy.chat(headers=SAMPLED)
    proxy.stop()
    outer, inner = spans(collector)
    assert (outer.trace_id.hex(), outer.parent_span_id.hex(), outer.kind) == (TRACE, SPAN, SERVER)
    assert (inner.trace_id.hex(), inner.parent_span_id, inner.kind) == (TRACE, outer.span_id, CLIENT)
    (seen,) = upstream.seen
    assert seen.headers["traceparent"] == f"00-{TRACE}-{inner.span_id.hex()}-01"
    assert seen.headers["tracestate"] == "vendor=x"
    assert outer.start_time_unix_nano <= inner.start_time_unix_nano <= inner.end_time_unix_nano


def test_spans_have_the_names_of_opentelemetry_and_ours(traced: Traced, collector: RawUpstream) -> None:
    proxy = traced()
    proxy.deploy("math", "Check the sign.")
    proxy.chat("CANARY-content", prefix="/set/math", headers={"x-note": "CANARY-header"})
    (exchange,) = proxy.recorded()
    outer, inner = spans(collector)
    assert (outer.name, inner.name) == ("POST /v1/chat/completions", "chat m")
    assert told(outer.attributes) == {
        "http.request.method": "POST",
        "url.path": "/set/math/v1/chat/completions",
        "http.response.status_code": 200,
        "tfgrpo.exchange.id": exchange.id,
        "tfgrpo.app": "default",
        "tfgrpo.outcome": "complete",
    }
    said = told(inner.attributes)
    assert said.pop("gen_ai.response.time_to_first_chunk") >= 0
    assert said.pop("tfgrpo.injected.tokens") > 0
    assert said == inner_of(exchange)
    assert not [seen for seen in collector.seen if b"CANARY" in seen.head + seen.body]


def inner_of(exchange: Exchange) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "up",
        "gen_ai.request.model": "m",
        "gen_ai.response.id": exchange.completion_id,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.conversation.id": exchange.trajectory,
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "tfgrpo.exchange.id": exchange.id,
        "tfgrpo.trajectory.id": exchange.trajectory,
        "tfgrpo.set": "math",
        "tfgrpo.version": 1,
        "tfgrpo.arm": exchange.arm,
    }


def test_without_the_setting_a_traceparent_passes_as_it_came(start_proxy: StartProxy, upstream: RawUpstream) -> None:
    start_proxy(upstream.base_url).chat(headers=SAMPLED)
    seen = upstream.seen[0].headers
    assert {name: seen[name] for name in SAMPLED} == SAMPLED


def test_nothing_but_the_trace_headers_is_changed_by_tracing(
    start_proxy: StartProxy, traced: Traced, upstream: RawUpstream
) -> None:
    traced().chat(headers={"X-Order": "1", "baggage": "a=b"})
    start_proxy(upstream.base_url).chat(headers={"X-Order": "1", "baggage": "a=b"})
    with_traces, without = upstream.seen
    assert [one for one in with_traces.raw_headers if one[0] != b"traceparent"] == without.raw_headers
    assert with_traces.body == without.body


@pytest.mark.parametrize(("sample", "sent", "expected"), [(0, {}, 0), (1, {}, 2), (0, SAMPLED, 2)])
def test_a_share_is_traced_unless_the_client_says(
    traced: Traced, collector: RawUpstream, sample: float, sent: dict[str, str], expected: int
) -> None:
    proxy = traced(sample=sample)
    proxy.chat(headers=sent)
    proxy.stop()
    assert len(spans(collector)) == expected


def test_what_is_not_sampled_says_so_upstream(traced: Traced, upstream: RawUpstream) -> None:
    traced(sample=0).chat()
    flags = int(upstream.seen[0].headers["traceparent"].rpartition("-")[2], 16)
    assert flags & 1 == 0


def test_an_answer_that_is_an_error_is_told_as_one(traced: Traced, collector: RawUpstream) -> None:
    proxy = traced()
    proxy.chat(model="missing")
    proxy.stop()
    outer, inner = spans(collector)
    assert told(inner.attributes)["error.type"] == "404"
    assert "error.type" not in told(outer.attributes), "what the client did wrong is no error of the server's"


def test_the_collector_s_key_is_sent_and_shown_nowhere(traced: Traced, collector: RawUpstream) -> None:
    proxy = traced(headers={"authorization": "Bearer CANARY-collector"})
    proxy.chat()
    proxy.stop()
    assert collector.seen[0].headers["authorization"] == "Bearer CANARY-collector"
    assert "CANARY" not in repr(proxy.settings)


def test_a_label_is_an_event_below_the_span_it_judges(traced: Traced, collector: RawUpstream) -> None:
    proxy = traced()
    id_ = proxy.chat(headers=SAMPLED).headers["x-tfgrpo-exchange"]
    label = {"exchange_id": id_, "value": True, "comment": "CANARY-comment", "feedback_id": "f1"}
    sent = {"authorization": "Bearer sk-client"}
    assert proxy.request("POST", "/v1/feedback", label, sent).status == 200
    assert proxy.request("POST", "/v1/feedback", label, sent).json["status"] == "duplicate"
    (exchange,) = proxy.recorded()
    (event,) = events(collector)
    _, inner = spans(collector)
    assert event.event_name == "gen_ai.evaluation.result"
    assert (event.trace_id, event.span_id) == (inner.trace_id, inner.span_id)
    said = told(event.attributes)
    assert said == {
        "gen_ai.response.id": exchange.completion_id,
        "gen_ai.conversation.id": exchange.trajectory,
        "tfgrpo.trajectory.id": exchange.trajectory,
        "gen_ai.evaluation.name": "reward",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "pass",
        "tfgrpo.exchange.id": id_,
        "tfgrpo.label.id": "f1",
        "tfgrpo.label.source": "user",
        "tfgrpo.app": "default",
    }
    assert not [seen for seen in collector.seen if b"CANARY" in seen.body]


def test_a_label_of_an_untraced_exchange_names_the_answer_by_its_id(traced: Traced, collector: RawUpstream) -> None:
    first = traced(sample=0)
    answered = first.chat()
    first.stop()
    # A worker that has not seen the exchange finds it in the store.
    proxy = traced(sample=0)
    judged = {"completion_id": answered.json["id"], "value": 0.25, "metric": "helpful"}
    assert proxy.request("POST", "/v1/feedback", judged, {"authorization": "Bearer sk-client"}).status == 200
    proxy.stop()
    (event,) = events(collector)
    said = told(event.attributes)
    assert (said["gen_ai.response.id"], said["gen_ai.evaluation.score.value"]) == (answered.json["id"], 0.25)
    assert "gen_ai.evaluation.score.label" not in said
    assert event.trace_id == b""


def test_a_label_of_a_trajectory_names_it(traced: Traced, collector: RawUpstream) -> None:
    proxy = traced()
    trajectory = proxy.chat().headers["x-tfgrpo-trajectory"]
    judged = {"trajectory_id": trajectory, "value": False}
    assert proxy.request("POST", "/v1/feedback", judged, {"authorization": "Bearer sk-client"}).status == 200
    proxy.stop()
    said = told(events(collector)[0].attributes)
    assert (said["gen_ai.conversation.id"], said["gen_ai.evaluation.score.label"]) == (trajectory, "fail")


@pytest.mark.parametrize("script", [hangs, refuses])
def test_a_collector_that_takes_nothing_costs_no_request_and_what_it_lost_is_counted(
    start_proxy: StartProxy, start_upstream: StartUpstream, upstream: RawUpstream, script: Any
) -> None:
    where = start_upstream(script).base_url.removesuffix("/v1")
    proxy = start_proxy(upstream.base_url, telemetry={"otlp": {"endpoint": where}, "metrics": True})
    statuses: list[int] = []
    # More than the queue holds, two spans each.
    taken = seconds_of(lambda: statuses.extend(proxy.chat().status for _ in range(1100)))
    assert set(statuses) == {200}
    assert taken < 30
    assert lost(proxy, "span") > 0
    assert seconds_of(proxy.stop) < 10


def lost(proxy: RunningProxy, what: str) -> float:
    name = f'tfgrpo_telemetry_dropped_total{{what="{what}"}}'
    lines = proxy.request("GET", "/metrics").body.decode().splitlines()
    return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))
