"""Which headers cross the proxy, in either direction. Pure.

All end-to-end headers cross, in their order and with their values. What belongs to one connection, to a browser
session or to the way a request took does not, nor what is ours; exactly one credential goes upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from proxy.auth import CREDENTIAL_HEADERS
from proxy.record_modes import HEADER as RECORD

RawHeaders = Sequence[tuple[bytes, bytes]]

OURS: Final = b"x-tfgrpo-"

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NOT_SENT: Final = _HOP_BY_HOP | {
    b"content-length",
    b"cookie",
    b"expect",
    b"forwarded",
    b"host",
    b"http2-settings",
    b"x-real-ip",
}
_NOT_SENT_PREFIXES: Final = (b"x-forwarded-", OURS)
_CREDENTIALS: Final = frozenset(CREDENTIAL_HEADERS)


def by_name(headers: RawHeaders) -> dict[bytes, bytes]:
    """Return headers by name. Of one that comes several times the last counts; what limits the recording stays a list.

    No later line, such as a gateway between may add, takes back that a client asked for less to be kept.
    """
    fields = dict(headers)
    if len(fields) < len(headers) and RECORD in fields:
        fields[RECORD] = b",".join([value for name, value in headers if name == RECORD])
    return fields


def upward(headers: RawHeaders, *, key: str | None, own: bool) -> list[tuple[bytes, bytes]]:
    """Return what goes to the upstream, without framing.

    With a `key` that is the credential, in the header where the client showed its own (a bearer if it showed none);
    without, the client's own, if `own` allows it: of several in one header the last, by which the client is known.
    """
    fields = dict(headers)
    shown = next((name for name in CREDENTIAL_HEADERS if fields.get(name)), None)
    dropped = _NOT_SENT | _named_by_connection(headers)
    sent = []
    for name, value in headers:
        if name in dropped or name.startswith(_NOT_SENT_PREFIXES):
            continue
        if name not in _CREDENTIALS:
            sent.append((name, value))
        elif own and key is None and name == shown and value == fields[name]:
            sent.append((name, value))
            shown = None
    if key is not None:
        sent.append(_paid(shown, key))
    return sent


def downward(headers: Iterable[tuple[bytes, bytes]], *, bodiless: bool = False) -> list[tuple[bytes, bytes]]:
    """Return what goes to the client of an upstream's headers. `bodiless`: a status that never has a body."""
    kept = [(name.lower(), value) for name, value in headers]
    dropped = _HOP_BY_HOP | _named_by_connection(kept)
    if bodiless:
        # The server below would wait for a body of that length.
        dropped |= {b"content-length"}
    return [(name, value) for name, value in kept if name not in dropped and not name.startswith(OURS)]


def has_body(fields: Mapping[bytes, bytes]) -> bool:
    """Whether a request announces a body."""
    return b"transfer-encoding" in fields or fields.get(b"content-length", b"0") != b"0"


def _named_by_connection(headers: RawHeaders) -> frozenset[bytes]:
    values = [value for name, value in headers if name == b"connection"]
    if not values or values in ([b"keep-alive"], [b"close"]):
        return frozenset()
    return frozenset(name.strip().lower() for value in values for name in value.split(b","))


def _paid(shown: bytes | None, key: str) -> tuple[bytes, bytes]:
    if shown is None or shown == b"authorization":
        return b"authorization", b"Bearer " + key.encode()
    return shown, key.encode()
