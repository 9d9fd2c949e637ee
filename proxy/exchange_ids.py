"""Ids of exchanges: random, roughly in the order of time, and marked as ours.

An id carries two truncated MACs. The first says that this installation made it, the second for whom, so that a
label can be accepted and authorised before the record of its exchange is there. It knows nothing of the store:
a genuine id says that an exchange was begun, not that it was kept.

Layout, in lower-case hex after `ex-`: 6 bytes milliseconds since the epoch, 9 bytes random, 10 bytes MAC of these,
10 bytes MAC of these and the owner. The MAC is keyed BLAKE2b (RFC 7693): a third of HMAC's cost, on each request.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time

from proxy.randomness import RandomBytes
from proxy.settings import DEFAULT_APP

PREFIX = "ex-"
_HEAD = 15
_MAC = 10
_HEX = re.compile(r"[0-9a-f]+", re.ASCII)
_LENGTH = len(PREFIX) + (_HEAD + 2 * _MAC) * 2


class ExchangeIds:
    """Makes and checks exchange ids. `secret` is the store's, shared by all workers."""

    def __init__(self, secret: bytes) -> None:
        self._origin_key = hmac.digest(secret, b"exchange id: origin", "sha256")
        self._random = RandomBytes()
        self._owner_key = hmac.digest(secret, b"exchange id: owner", "sha256")

    def new(self, app: str, credential: str) -> str:
        """Return a fresh id of visible ASCII for an exchange of `app`, made with `credential`."""
        head = int(time.time() * 1000).to_bytes(6) + self._random.take(_HEAD - 6)
        raw = head + self._origin(head) + self._owner(head, app, credential)
        return PREFIX + raw.hex()

    def genuine(self, exchange_id: str) -> bool:
        """Return whether this installation made the id."""
        raw = _decode(exchange_id)
        return raw is not None and hmac.compare_digest(raw[_HEAD : _HEAD + _MAC], self._origin(raw[:_HEAD]))

    def owned(self, exchange_id: str, app: str, credential: str) -> bool:
        """Return whether the id was made for this owner.

        A configured app owns its exchanges whichever of its keys made them. In the default app, which anyone may
        share, it is the credential.
        """
        raw = _decode(exchange_id)
        return (
            raw is not None
            and self.genuine(exchange_id)
            and hmac.compare_digest(raw[_HEAD + _MAC :], self._owner(raw[:_HEAD], app, credential))
        )

    def _origin(self, head: bytes) -> bytes:
        return hashlib.blake2b(head, digest_size=_MAC, key=self._origin_key).digest()

    def _owner(self, head: bytes, app: str, credential: str) -> bytes:
        owner = credential if app == DEFAULT_APP else ""
        text = f"{len(app)}:{app}{owner}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(head + text, digest_size=_MAC, key=self._owner_key).digest()


def _decode(exchange_id: str) -> bytes | None:
    if len(exchange_id) != _LENGTH or not exchange_id.startswith(PREFIX):
        return None
    digits = exchange_id[len(PREFIX) :]
    return bytes.fromhex(digits) if _HEX.fullmatch(digits) else None
