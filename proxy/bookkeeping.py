"""What happens to an exchange when it is over: its answer is read, its links are settled, its record is queued.

Nothing here is waited for by a client, and nothing here can fail a request: whatever goes wrong is caught once, logged
and counted. It does not know how an exchange was relayed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeAlias

from msgspec.structs import replace

from proxy.calls import LARGE, Call, Given
from proxy.linking import Linker
from proxy.origins import Origins
from proxy.recording import Recorder
from proxy.transcript import Transcript
from tfgrpo.dialects import Dialect, decoded
from tfgrpo.types import Bodies, Exchange, Outcome, Response

LOG_SECONDS = 1.0

Observer: TypeAlias = Callable[[Exchange, Given, Transcript], None]
"""Who is told of each exchange that is over."""

_log = logging.getLogger(__name__)


class Bookkeeper:
    """Reads, settles and records finished exchanges of one worker. `origins`: where there are several upstreams.

    `observers` are told last, once a record is queued.
    """

    def __init__(self, linker: Linker, recorder: Recorder, origins: Origins | None = None) -> None:
        self._linker = linker
        self._recorder = recorder
        self._origins = origins
        self.observers: Sequence[Observer] = ()
        self._reading: set[asyncio.Task[None]] = set()
        self._logged_at = float("-inf")
        self.faults = 0
        """How often something of ours went wrong beside a live request."""

    def close(self, call: Call, given: Given, transcript: Transcript) -> None:
        """Take over a finished exchange. Never waits, never raises."""
        try:
            self._close(call, given, transcript)
        except Exception:  # noqa: BLE001 - the edge: a record that cannot be made must not touch the request
            transcript.release()
            self.fault("an exchange could not be recorded")

    def fault(self, what: str) -> None:
        """Count what went wrong while handling an exception, and log it, at most once a second."""
        self.faults += 1
        now = time.monotonic()
        if now - self._logged_at >= LOG_SECONDS:
            self._logged_at = now
            _log.exception("%s (%d faults so far)", what, self.faults)

    async def drain(self) -> None:
        """Wait for the answers that are still being read."""
        while self._reading:
            await asyncio.gather(*self._reading, return_exceptions=True)

    def _close(self, call: Call, given: Given, transcript: Transcript) -> None:
        bodies = transcript.bodies()
        if call.dialect is None or transcript.truncated or len(bodies.response) <= LARGE:
            self._record(call, given, transcript, bodies, _read(call.dialect, bodies, transcript))
            return
        task = asyncio.create_task(self._read_aside(call, given, transcript, bodies))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read_aside(self, call: Call, given: Given, transcript: Transcript, bodies: Bodies) -> None:
        try:
            with self._linker.reading(given.evidence) if given.evidence is not None else nullcontext():
                response = await asyncio.to_thread(_read, call.dialect, bodies, transcript)
                self._record(call, given, transcript, bodies, response)
        except Exception:  # noqa: BLE001 - the edge, as in `close`
            transcript.release()
            self.fault("an exchange could not be recorded")

    def _record(
        self, call: Call, given: Given, transcript: Transcript, bodies: Bodies, response: Response | None
    ) -> None:
        outcome = _outcome(transcript, response)
        if given.placement is not None and given.evidence is not None:
            self._linker.settle(given.placement, call.id, given.evidence, response, outcome)
        exchange = _exchange(call, given, transcript, response, outcome)
        if self._origins is not None and outcome != "failed" and not transcript.truncated:
            exchange = replace(exchange, completion_id=self._origins.learn(call, response, bodies))
        transcript.release()
        if given.record != "off":
            self._recorder.put(exchange, bodies if given.record == "full" else Bodies())
        for observe in self.observers:
            observe(exchange, given, transcript)


def _read(dialect: Dialect | None, bodies: Bodies, transcript: Transcript) -> Response | None:
    if dialect is None or transcript.truncated or not bodies.response or transcript.ended == "failed":
        return None
    plain = decoded(bodies.response, bodies.response_encoding)
    return None if plain is None else dialect.read_response(plain, bodies.response_type)


def _outcome(transcript: Transcript, response: Response | None) -> Outcome:
    """How it ended, now that the answer has been read.

    A client that leaves when it has seen the end of the answer left nothing unanswered; a stream that ends cleanly
    before its end, or with an error inside, was cut.
    """
    ended = transcript.ended or "broken"
    if response is None:
        return ended
    if ended == "aborted" and response.complete and response.choices:
        return "complete"
    return "broken" if ended == "complete" and not response.complete else ended


def _exchange(
    call: Call, given: Given, transcript: Transcript, response: Response | None, outcome: Outcome
) -> Exchange:
    placement = given.placement
    return Exchange(
        id=call.id,
        app=call.identity.app,
        set=call.route.set_name,
        version=given.version,
        arm=given.arm,
        trajectory=placement.assignment.trajectory if placement is not None else call.route.trajectory or "",
        group=placement.assignment.group if placement is not None else call.route.group or "",
        dialect=call.dialect.name if call.dialect is not None and call.dialect.turn else None,
        method=call.method,
        path=call.path,
        model=call.model,
        upstream=call.route.upstream.name,
        credential=call.identity.credential,
        outcome=outcome,
        status=transcript.status,
        started_at=transcript.started_at,
        first_byte_at=transcript.first_byte_at,
        ended_at=transcript.ended_at,
        completion_id=response.id if response is not None else None,
        prompt_tokens=response.prompt_tokens if response is not None else None,
        completion_tokens=response.completion_tokens if response is not None else None,
        parent=placement.parent if placement is not None else None,
        choices=call.request.n if call.request is not None else 1,
        retry=placement.retry if placement is not None else False,
        truncated=transcript.truncated,
        finish_reason=response.choices[0].finish_reason if response is not None and response.choices else None,
        note="; ".join(transcript.notes),
        record="full" if given.record == "full" else "metadata",
        record_share=given.record_share,
        sent_at=transcript.sending_at,
    )
