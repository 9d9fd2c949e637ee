"""OpenTelemetry traces, sent by OTLP over HTTP: two spans an exchange, and labels as events of theirs.

The server's span lasts from the request's arrival to the end of its answer, the one below it from sending on; their
starts lie apart by what the proxy adds. The client's `traceparent` is continued, and the upstream gets that of the
inner span. Names are those of OpenTelemetry's HTTP and GenAI conventions, `tfgrpo.` for what is ours. Nothing that was
said is in a span. Spans are sent by a thread of the SDK's; what a collector does not take is dropped and counted.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from proxy.calls import Given
from proxy.evaluation_events import EvaluationEvents, Judged
from proxy.gen_ai import OPERATIONS, injected_tokens
from proxy.headers import RawHeaders
from proxy.telemetry_settings import OtlpSettings
from proxy.transcript import Transcript
from tfgrpo.store import Store
from tfgrpo.types import Exchange, Label

SECONDS: Final = 5.0
"""How long a collector may take for one batch, its retries included."""

PATIENCE: Final = 2.0
"""How long the end waits for what is left to be sent."""

MOST_WAITING: Final = 2048
"""Spans that may wait for the collector; beyond that they are dropped and counted."""

MOST_REMEMBERED: Final = 10_000
"""Exchanges whose spans a label can still be tied to, the newest of this worker."""

LONGEST_TEXT: Final = 256
"""Clients choose models and names: a longer one is cut."""

_HEADERS: Final = {b"traceparent": "traceparent", b"tracestate": "tracestate"}
_PATHS: Final = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "completions": "/v1/completions",
}
_FAILED: Final = 500
_w3c: Final = TraceContextTextMapPropagator()


def create(settings: OtlpSettings, store: Store) -> Traces:
    """Make the traces of one worker. The client of the collector heeds no proxy and no `.netrc` of the environment."""
    base = settings.endpoint.rstrip("/")
    headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
    # What the environment says (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) comes last and wins.
    named = Resource({"service.name": "tfgrpo-proxy", "service.version": version("tfgrpo-proxy")})
    resource = named.merge(OTELResourceDetector().detect())
    exporter = OTLPSpanExporter(f"{base}/v1/traces", headers=headers, timeout=SECONDS, session=_session())
    events = EvaluationEvents(f"{base}/v1/logs", headers, resource, _session(), store)
    return Traces(exporter, resource, events, sample=settings.sample)


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    return session


class Counted(SpanExporter):
    """An exporter that knows how many spans were handed to it and not taken. `waiting` is raised by who ends spans."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self._waiting = 0
        self.lost = 0

    def expect(self, count: int) -> bool:
        """Whether so many spans more may be ended; when they may not, they count as lost."""
        with self._lock:
            if self._waiting + count > MOST_WAITING:
                self.lost += count
                return False
            self._waiting += count
            return True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        result = self._inner.export(spans)
        with self._lock:
            self._waiting -= len(spans)
            self.lost += len(spans) if result is not SpanExportResult.SUCCESS else 0
        return result

    def shutdown(self) -> None:
        """Send no more, and wait for no retry."""
        self._inner.shutdown()


class Traces:
    """The spans of one worker's exchanges."""

    def __init__(
        self, exporter: SpanExporter, resource: Resource, events: EvaluationEvents, *, sample: float = 1.0
    ) -> None:
        self._exporter = Counted(exporter)
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(sample)),
            resource=resource,
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_span_attribute_length=LONGEST_TEXT),
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter, max_queue_size=2 * MOST_WAITING))
        self._tracer = self._provider.get_tracer("tfgrpo-proxy", version("tfgrpo-proxy"))
        self._events = events
        self._remembered: OrderedDict[str, Judged] = OrderedDict()

    def begin(self, headers: RawHeaders) -> ExchangeTrace:
        """Begin to trace a request, below the span that its client names."""
        return ExchangeTrace(self._tracer, headers)

    def __call__(self, exchange: Exchange, given: Given, transcript: Transcript) -> None:
        """End the spans of one exchange that is over."""
        trace = transcript.trace
        if not isinstance(trace, ExchangeTrace) or not trace.outer.is_recording():
            return
        if not self._exporter.expect(1 if trace.inner is None else 2):
            return
        end = _nanoseconds(exchange.ended_at)
        if trace.inner is not None:
            _describe_inner(trace.inner, exchange, given, transcript)
            trace.inner.end(end)
        _describe_outer(trace.outer, exchange)
        trace.outer.end(end)
        self._remember(exchange, trace.inner or trace.outer)

    def label(self, label: Label) -> None:
        """Have a new label told as an event, below the span of the exchange it judges where that is known."""
        self._events.put(label, self._remembered.get(label.exchange or ""))

    def start(self) -> None:
        """Start the thread of the events; that of the spans runs already."""
        self._events.start()

    def stop(self) -> None:
        """Send what waits, for at most PATIENCE seconds."""
        # The SDK's own bound is half a minute, and its thread waits for nobody at the end of the program.
        flushing = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        flushing.start()
        self._events.stop(PATIENCE)
        flushing.join(PATIENCE)

    def lost(self) -> Mapping[str, int]:
        """How many spans and events were not taken."""
        return {"span": self._exporter.lost, "event": self._events.lost}

    def _remember(self, exchange: Exchange, span: Span) -> None:
        # The context alone: the span would keep all that was said of it.
        context = set_span_in_context(NonRecordingSpan(span.get_span_context()), Context())
        self._remembered[exchange.id] = Judged(exchange.completion_id, exchange.trajectory, context)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)


class ExchangeTrace:
    """The spans of one exchange: `outer` is the proxy's, `inner` the upstream's work as seen from here."""

    def __init__(self, tracer: Tracer, headers: RawHeaders) -> None:
        self._tracer = tracer
        carried = {_HEADERS[name]: value.decode("latin-1") for name, value in headers if name in _HEADERS}
        self.outer = tracer.start_span("request", _w3c.extract(carried, Context()), SpanKind.SERVER)
        self.inner: Span | None = None

    def onward(self, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Begin the span of the upstream's work; return the headers with its `traceparent`."""
        below = set_span_in_context(self.outer, Context())
        self.inner = self._tracer.start_span("upstream", below, SpanKind.CLIENT)
        carried: dict[str, str] = {}
        _w3c.inject(carried, set_span_in_context(self.inner, Context()))
        kept = [(name, value) for name, value in headers if name not in _HEADERS]
        return kept + [(name.encode(), value.encode("latin-1")) for name, value in carried.items()]


def _describe_outer(span: Span, exchange: Exchange) -> None:
    path = _PATHS.get(exchange.dialect or "")
    span.update_name(exchange.method if path is None else f"{exchange.method} {path}")
    _tell(
        span,
        {
            "http.request.method": exchange.method,
            "url.path": exchange.path.partition("?")[0],
            "http.response.status_code": exchange.status,
            "tfgrpo.exchange.id": exchange.id,
            "tfgrpo.app": exchange.app,
            "tfgrpo.outcome": exchange.outcome,
        },
    )
    # What the client did wrong is no error of the server's (HTTP conventions).
    if exchange.outcome == "broken" or (exchange.status or _FAILED) >= _FAILED:
        _fail(span, exchange)


def _describe_inner(span: Span, exchange: Exchange, given: Given, transcript: Transcript) -> None:
    operation = OPERATIONS.get(exchange.dialect or "")
    span.update_name(exchange.method if operation is None else f"{operation} {exchange.model or ''}".rstrip())
    first, sent = exchange.first_byte_at, transcript.sending_at
    _tell(
        span,
        {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": exchange.upstream,
            "gen_ai.request.model": exchange.model,
            "gen_ai.request.choice.count": exchange.choices if exchange.choices > 1 else None,
            "gen_ai.response.id": exchange.completion_id,
            "gen_ai.response.finish_reasons": None if exchange.finish_reason is None else [exchange.finish_reason],
            "gen_ai.response.time_to_first_chunk": None if first is None or sent is None else max(0.0, first - sent),
            "gen_ai.usage.input_tokens": exchange.prompt_tokens,
            "gen_ai.usage.output_tokens": exchange.completion_tokens,
            "gen_ai.conversation.id": exchange.trajectory or None,
            "http.request.method": exchange.method,
            "http.response.status_code": exchange.status,
            "tfgrpo.exchange.id": exchange.id,
            "tfgrpo.trajectory.id": exchange.trajectory or None,
            "tfgrpo.set": exchange.set,
            "tfgrpo.version": exchange.version if given.injected != "none" else None,
            "tfgrpo.arm": exchange.arm,
            "tfgrpo.injected.tokens": injected_tokens(given, transcript) or None,
        },
    )
    if exchange.outcome != "complete":
        _fail(span, exchange)


def _tell(span: Span, attributes: Mapping[str, Any]) -> None:
    span.set_attributes({name: value for name, value in attributes.items() if value is not None})


def _fail(span: Span, exchange: Exchange) -> None:
    span.set_attribute("error.type", exchange.outcome if exchange.outcome != "failed" else str(exchange.status))
    span.set_status(Status(StatusCode.ERROR))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
