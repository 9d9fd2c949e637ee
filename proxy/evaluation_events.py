"""Labels as OpenTelemetry's `gen_ai.evaluation.result` events: name, value, what was judged. No comment, no answer.

One thread takes labels from a bounded queue, finds out what the store knows of the exchange, and hands the event to the
SDK, which sends it in another. Nobody waits for either; what is not taken is dropped and counted.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import requests
from opentelemetry._logs import SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource

from tfgrpo.errors import StoreError
from tfgrpo.store import Store
from tfgrpo.types import Label

NAME: Final = "gen_ai.evaluation.result"
SECONDS: Final = 5.0
"""How long a collector may take for one batch, its retries included."""

MOST_WAITING: Final = 2048
_VERDICTS: Final = {0.0: "fail", 1.0: "pass"}


class Judged(NamedTuple):
    """What a label is said of, and the context of its span."""

    completion_id: str | None
    trajectory: str | None
    context: Context = Context()


class _Counted(LogRecordExporter):
    def __init__(self, inner: LogRecordExporter) -> None:
        self._inner = inner
        self.lost = 0

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Send events."""
        result = self._inner.export(batch)
        self.lost += len(batch) if result is not LogRecordExportResult.SUCCESS else 0
        return result

    def shutdown(self) -> None:
        """Send no more, and wait for no retry."""
        self._inner.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        """Nothing waits here."""
        return self._inner.force_flush(timeout_millis)


class EvaluationEvents:
    """The events of one worker's labels. Start it, stop it; in between any thread may put."""

    def __init__(
        self, address: str, headers: Mapping[str, str], resource: Resource, session: requests.Session, store: Store
    ) -> None:
        self._exporter = _Counted(OTLPLogExporter(address, headers=dict(headers), timeout=SECONDS, session=session))
        self._provider = LoggerProvider(resource, shutdown_on_exit=False)
        self._provider.add_log_record_processor(BatchLogRecordProcessor(self._exporter, max_queue_size=MOST_WAITING))
        self._logger = self._provider.get_logger("tfgrpo-proxy")
        self._store = store
        self._labels: queue.Queue[tuple[Label, Judged | None] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="evaluation events", daemon=True)
        self._refused = 0

    @property
    def lost(self) -> int:
        """How many events were not taken."""
        return self._refused + self._exporter.lost

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Send what waits, for at most `timeout` seconds."""
        try:
            self._labels.put(None, timeout=timeout)
        except queue.Full:
            return
        self._thread.join(timeout)

    def put(self, label: Label, judged: Judged | None) -> None:
        """Have a label told; what it judges is looked up where it is not given. Never waits."""
        try:
            self._labels.put_nowait((label, judged))
        except queue.Full:
            self._refused += 1

    def _run(self) -> None:
        while (waiting := self._labels.get()) is not None:
            self._tell(*waiting)
        self._provider.shutdown()

    def _tell(self, label: Label, known: Judged | None) -> None:
        judged = known or self._find(label)
        said = {
            "gen_ai.evaluation.name": label.metric,
            "gen_ai.evaluation.score.value": label.value,
            "gen_ai.evaluation.score.label": _VERDICTS.get(label.value) if label.metric == "reward" else None,
            "gen_ai.response.id": judged.completion_id,
            "gen_ai.conversation.id": judged.trajectory,
            "tfgrpo.exchange.id": label.exchange,
            "tfgrpo.trajectory.id": judged.trajectory,
            "tfgrpo.label.id": label.feedback_id,
            "tfgrpo.label.source": label.source,
            "tfgrpo.app": label.app,
        }
        self._logger.emit(
            timestamp=int(label.created_at * 1e9),
            context=judged.context,
            severity_number=SeverityNumber.INFO,
            attributes=_there(said),
            event_name=NAME,
        )

    def _find(self, label: Label) -> Judged:
        """What is judged, as far as it is recorded already and the store answers."""
        if label.exchange is None:
            return Judged(None, label.trajectory)
        try:
            found = self._store.traffic.exchange(label.exchange)
        except StoreError:
            found = None
        return Judged(None, None) if found is None else Judged(found.completion_id, found.trajectory)


def _there(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
