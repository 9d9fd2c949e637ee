"""A collector of OpenTelemetry's: takes OTLP over HTTP and reads the protobuf."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.upstreams import RawUpstream, Seen, Step, answer


def takes(_: Seen) -> Iterator[Step]:
    yield answer(b"", content_type="application/x-protobuf")


def refuses(_: Seen) -> Iterator[Step]:
    yield answer(b"", status=400, content_type="application/x-protobuf")


def hangs(_: Seen) -> Iterator[Step]:
    yield "hold"


def spans(collector: RawUpstream) -> list[Span]:
    """The spans that came, the oldest first."""
    found = []
    for seen in collector.seen:
        if seen.target == "/v1/traces":
            sent = ExportTraceServiceRequest.FromString(seen.body)
            found += [span for one in sent.resource_spans for scope in one.scope_spans for span in scope.spans]
    return sorted(found, key=lambda span: span.start_time_unix_nano)


def events(collector: RawUpstream) -> list[LogRecord]:
    """The events that came."""
    found = []
    for seen in collector.seen:
        if seen.target == "/v1/logs":
            sent = ExportLogsServiceRequest.FromString(seen.body)
            found += [record for one in sent.resource_logs for scope in one.scope_logs for record in scope.log_records]
    return found


def told(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    """Attributes as plain values."""
    return {one.key: _plain(one.value) for one in attributes}


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(one) for one in value.array_value.values]
    return None if kind is None else getattr(value, kind)


def seconds_of(work: Any) -> float:
    """How long some work takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began
