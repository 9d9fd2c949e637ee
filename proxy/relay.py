"""The endpoint of everything that is relayed: open -> place -> inject -> send -> relay -> close.

A value is handed on at each arrow. What fails before the upstream's first byte is answered in the envelope of the API
that was called; what fails after it ends the client's stream without its end, for a half answer must never look whole.
Nothing that we do beside relaying can fail a request: it is caught at the edge, logged and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from proxy.answers import Answer
from proxy.auth import Identity, Keys, shown_key
from proxy.bookkeeping import Bookkeeper
from proxy.calls import Call, Given, off_loop
from proxy.client import Client, Expired, Gone, Receive, Scope, Send
from proxy.connections import BARE_QUERY, LINE
from proxy.errors import EXCHANGE_HEADER, STOPPED, ProxyError, too_large
from proxy.exchange_ids import ExchangeIds
from proxy.failures import Broken, Unreachable
from proxy.headers import RawHeaders, by_name, downward, has_body, upward
from proxy.litellm_upstream import LitellmUpstream
from proxy.origins import Origins, model_in, named
from proxy.paths import Address
from proxy.placing import Placing
from proxy.routing import Fields, Router
from proxy.transcript import Lender, Trace, Transcript
from proxy.upstream import HttpUpstream
from proxy.websockets import REFUSED
from tfgrpo.dialects import Dialect, decoded, dialect_of
from tfgrpo.types import Request


class _Named(msgspec.Struct):
    """The one field that routing needs of a body that nobody else reads."""

    model: str | None = None


_find_model = msgspec.json.Decoder(_Named).decode


class _Arrival(msgspec.Struct, frozen=True):
    """A request whose sender is known. `target` is what goes below the upstream's base: path and query, raw."""

    id: str
    identity: Identity
    method: str
    path: str
    target: str
    headers: RawHeaders
    fields: Fields
    address: Address


@dataclass(frozen=True, slots=True)
class Limits:
    """What one worker takes. `kept` bounds the copy of each body; `seconds` an exchange."""

    body: int
    kept: int
    in_flight: int | None = None
    seconds: float | None = None


class Relay:
    """Relays requests. Its collaborators are started and stopped by whoever made them."""

    def __init__(
        self,
        *,
        keys: Keys,
        router: Router,
        origins: Origins | None,
        ids: ExchangeIds,
        placing: Placing,
        upstream: HttpUpstream,
        litellm: LitellmUpstream,
        books: Bookkeeper,
        limits: Limits,
        lender: Lender,
    ) -> None:
        self._keys = keys
        self._router = router
        self._origins = origins
        self._ids = ids
        self._placing = placing
        self._upstream = upstream
        self._litellm = litellm
        self._books = books
        self._limits = limits
        self._lender = lender
        self.tracer: Callable[[RawHeaders], Trace] | None = None
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send, address: Address) -> None:
        """Relay one request to where its path, its headers and its model say."""
        client = Client(receive, send, scope.get(LINE))
        self.in_flight += 1
        try:
            self._admit(scope)
            await self._serve(self._arrival(scope, address), client)
        except ProxyError as error:
            await client.refuse(error, address.api)
        finally:
            self.in_flight -= 1

    def _admit(self, scope: Scope) -> None:
        most = self._limits.in_flight
        if most is not None and self.in_flight > most:
            raise ProxyError(
                503,
                f"{most} requests are in flight already; try again in a moment",
                code="overloaded",
                headers=((b"retry-after", b"1"),),
            )
        if scope["method"] == "CONNECT":
            raise ProxyError(405, "CONNECT is not relayed", code="method_not_allowed")

    def _arrival(self, scope: Scope, address: Address) -> _Arrival:
        headers: RawHeaders = scope["headers"]
        path = scope["raw_path"].decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        fields = by_name(headers)
        if b"upgrade" in fields and (b"upgrade", b"websocket") in [(name, value.lower()) for name, value in headers]:
            raise REFUSED
        identity = self._keys.identify(fields)
        if b"transfer-encoding" in fields:
            _check_coding(headers)
        return _Arrival(
            id=self._ids.new(identity.app, identity.credential),
            identity=identity,
            method=scope["method"],
            path=path,
            target=f"{address.below}?{query}" if query or BARE_QUERY in scope else address.below,
            headers=headers,
            fields=fields,
            address=address,
        )

    async def _serve(self, arrival: _Arrival, client: Client) -> None:
        transcript = Transcript(self._limits.kept, self._lender)
        if self.tracer is not None and not self._placing.bypassed:
            transcript.trace = self.tracer(arrival.headers)
        try:
            call = await self._open(arrival, client, transcript)
            if self._origins is not None:
                call = await self._brought_home(call, arrival, self._origins, transcript)
            await self._exchange(call, arrival, client, transcript)
        except ProxyError as error:
            transcript.release()
            await client.refuse(error, arrival.address.api, arrival.id)
        except Gone:
            return
        except asyncio.CancelledError:
            # The server stops, and the time to finish is over: it has said so in the log, and waits for nobody.
            if not client.answered:
                await client.refuse(STOPPED, arrival.address.api, arrival.id)
        except Exception:  # noqa: BLE001 - the outer edge: a fault of ours is an answer, a log line and a count
            transcript.release()
            self._books.fault("a request could not be relayed")
            if not client.answered:
                fault = ProxyError(500, "the proxy failed on this request", code="internal_error")
                await client.refuse(fault, arrival.address.api, arrival.id)

    async def _open(self, arrival: _Arrival, client: Client, transcript: Transcript) -> Call:
        """Find out whose the request is, what it asks for and where it goes."""
        dialect = dialect_of(arrival.address.below) if arrival.method == "POST" else None
        transcript.request_encoding = arrival.fields.get(b"content-encoding", b"").decode("latin-1")
        if dialect is None and not self._must_peek(arrival):
            return self._call(arrival, None)
        self._check_length(arrival.fields)
        try:
            body = await client.read(self._limits.body)
        except Gone:
            transcript.end("aborted", "the client left while it sent its request")
            call = self._call(arrival, dialect)
            self._close(call, self._placing.nothing(call), transcript)
            raise
        transcript.request.add(body)
        request = await off_loop(len(body), _read, dialect, body, transcript.request_encoding)
        return self._call(arrival, dialect, body, request)

    def _check_length(self, fields: Fields) -> None:
        """Refuse a body that is announced to be too long, before any of it is taken."""
        announced = fields.get(b"content-length")
        if announced is not None and int(announced) > self._limits.body:
            raise too_large(self._limits.body)

    def _must_peek(self, arrival: _Arrival) -> bool:
        """Whether a body that is read as no API must be held to learn its model, because the model decides."""
        fields = arrival.fields
        is_json = fields.get(b"content-type", b"").lower().startswith(b"application/json")
        return self._router.needs_model and is_json and has_body(fields) and b"content-encoding" not in fields

    def _call(
        self, arrival: _Arrival, dialect: Dialect | None, body: bytes | None = None, request: Request | None = None
    ) -> Call:
        model = request.model if request is not None else _model(body)
        route = self._router.route(arrival.identity, arrival.address, arrival.fields, model)
        return Call(
            id=arrival.id,
            identity=arrival.identity,
            method=arrival.method,
            path=arrival.path,
            route=route,
            model=model,
            dialect=dialect,
            body=body,
            request=request,
        )

    async def _brought_home(self, call: Call, arrival: _Arrival, origins: Origins, transcript: Transcript) -> Call:
        """Send a request to the upstream that made what it names, where path and model leave that open."""
        below = arrival.address.below
        if (model := model_in(below)) is not None:
            return self._at(self._router.taking(model), call, arrival)
        ids = named(below, call.request, call.body if call.dialect is None else None)
        if not ids or not self._router.leaves_open(arrival.address, call.model):
            return call
        home = await origins.find(call.identity.app, ids)
        moved = self._at(home, call, arrival)
        if home is None:
            transcript.notes.append(f"no upstream is known to have made {ids[0]}")
        elif moved.route.upstream.name != home:
            transcript.notes.append(f"the upstream {home!r}, which made {ids[0]}, is not configured for this")
        return moved

    def _at(self, home: str | None, call: Call, arrival: _Arrival) -> Call:
        """Send a request to that upstream, if it is one for it."""
        if home is None:
            return call
        route = self._router.route(arrival.identity, arrival.address, arrival.fields, call.model, home=home)
        return replace(call, route=route)

    async def _exchange(self, call: Call, arrival: _Arrival, client: Client, transcript: Transcript) -> None:
        given = self._placing.nothing(call)
        streams = call.body is None and has_body(arrival.fields)
        try:
            with client.watched(self._limits.seconds):
                given = await self._placing.give(call, transcript)
                body = client.chunks(transcript.request.add) if streams else given.body
                transcript.sending()
                answer = await self._send(call, arrival, body, transcript.trace)
                try:
                    await _relay(answer, _marks(call, given), client, transcript)
                finally:
                    answer.close()
            transcript.end()
        except Gone:
            transcript.end("aborted", "the client left")
        except Unreachable as failure:
            await self._refuse(_unreachable(call, failure), arrival, client, transcript)
        except ProxyError as error:
            await self._refuse(error, arrival, client, transcript)
        except Expired:
            await self._expire(call, arrival, client, transcript)
        except Broken as failure:
            # Without its end the server closes the connection, which is how the client learns of it.
            transcript.end("broken", f"the upstream broke off: {failure}")
        except asyncio.CancelledError:
            transcript.end("broken", "the proxy was stopped")
            raise
        finally:
            self._close(call, given, transcript)

    async def _send(
        self, call: Call, arrival: _Arrival, body: bytes | AsyncIterator[bytes] | None, trace: Trace | None
    ) -> Answer:
        route = call.route
        if (way := route.upstream.translated) is not None:
            own = shown_key(arrival.fields).decode("latin-1") if route.own and not way.environment else ""
            line = (call.method, arrival.address.below)
            return await self._litellm.send(route.upstream, way, route.credential or own, line, body)
        headers = upward(arrival.headers, key=route.credential, own=route.own)
        if trace is not None:
            headers = trace.onward(headers)
        length = arrival.fields.get(b"content-length")
        if length is not None and body is not None and not isinstance(body, bytes):
            headers.append((b"content-length", length))
        return await self._upstream.send(call.method, route.upstream.base_url + arrival.target, headers, body)

    async def _refuse(self, error: ProxyError, arrival: _Arrival, client: Client, transcript: Transcript) -> None:
        transcript.status = error.status
        transcript.end("failed", error.message)
        await client.refuse(error, arrival.address.api, arrival.id)

    async def _expire(self, call: Call, arrival: _Arrival, client: Client, transcript: Transcript) -> None:
        said = f"it took longer than the {self._limits.seconds:g} s of timeouts.total"
        if client.answered:
            transcript.end("broken", said)
        else:
            await self._refuse(_unreachable(call, Unreachable(said, timed_out=True)), arrival, client, transcript)

    def _close(self, call: Call, given: Given, transcript: Transcript) -> None:
        transcript.end("broken")
        if given.bypassed:
            transcript.release()
        else:
            self._books.close(call, given, transcript)


async def _relay(answer: Answer, marks: RawHeaders, client: Client, transcript: Transcript) -> None:
    """Pass an answer on as it comes. The last piece goes with the end where it is known, in one write."""
    headers = [*downward(answer.headers, bodiless=answer.bodiless), *marks]
    transcript.answered(answer.status, headers)
    await client.start(answer.status, headers)

    def take(piece: bytes) -> bool:
        taken = client.pass_on(piece)
        if taken:
            transcript.received(piece)
        return taken

    answer.take = take
    while piece := await answer.read():
        transcript.received(piece)
        if answer.ended:
            await client.send(piece, more=False)
            return
        await client.send(piece, more=True)
    await client.send(b"", more=False)


def _marks(call: Call, given: Given) -> RawHeaders:
    """Our own response headers."""
    marks = [(EXCHANGE_HEADER, call.id.encode())]
    if call.dialect is not None:
        if given.placement is not None:
            marks.append((b"x-tfgrpo-trajectory", given.placement.assignment.trajectory.encode()))
        marks.append((b"x-tfgrpo-set", given.injected.encode()))
        marks.append((b"x-tfgrpo-arm", given.arm.encode()))
    return marks


def _unreachable(call: Call, failure: Unreachable) -> ProxyError:
    status, code = (504, "upstream_timeout") if failure.timed_out else (502, "upstream_unreachable")
    return ProxyError(status, f"the upstream {call.route.upstream.name!r} gave no answer: {failure}", code=code)


def _check_coding(headers: RawHeaders) -> None:
    """Refuse a body in a coding that would have to be undone: framing is made anew (RFC 9112, 6.1: 501)."""
    for name, value in headers:
        if name == b"transfer-encoding" and value.strip().lower() != b"chunked":
            raise ProxyError(501, "a body is taken as it is or in chunks", code="transfer_coding_not_supported")


def _read(dialect: Dialect | None, body: bytes, encoding: str) -> Request | None:
    plain = decoded(body, encoding) if dialect is not None else None
    return None if dialect is None or plain is None else dialect.read_request(plain)


def _model(body: bytes | None) -> str | None:
    if not body:
        return None
    try:
        return _find_model(body).model
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
