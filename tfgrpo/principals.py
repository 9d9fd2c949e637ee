"""Who stands behind a trajectory: the key that made it, or the end user that it names, each as a keyed hash.

Keys are hashed when they are recorded. Users are named by the application, in each request, and by nobody else: what
they are called is hashed here, and kept nowhere.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from tfgrpo.dialects import decoded
from tfgrpo.store import Store
from tfgrpo.teaching import Teaching
from tfgrpo.types import Bodies, Exchange


class Principals:
    """Tells principals apart as the configuration has it."""

    def __init__(self, store: Store, teaching: Teaching) -> None:
        self._secret = store.secret() if teaching.by_user else b""

    def of(self, exchange: Exchange, bodies: Bodies | None) -> str:
        """Return who made a trajectory that begins with this exchange. One that names no user is its key's."""
        key = f"{exchange.app}/{exchange.credential}"
        users = end_users(bodies) if self._secret and bodies is not None else ()
        return "/".join([key, *(self._hashed(one) for one in sorted(users))])

    def _hashed(self, user: str) -> str:
        return hashlib.blake2b(user.encode("utf-8", "surrogatepass"), key=self._secret, digest_size=16).hexdigest()


def end_users(bodies: Bodies) -> set[str]:
    """Return the ids by which a request names its end user; none for a body that is not a JSON object."""
    plain = decoded(bodies.request, bodies.request_encoding)
    try:
        body: Any = msgspec.json.decode(plain) if plain is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return set()
    if not isinstance(body, dict):
        return set()
    metadata = body.get("metadata")
    named = [body.get("user"), body.get("safety_identifier")]
    named += [metadata.get("user_id")] if isinstance(metadata, dict) else []
    return {name for name in named if isinstance(name, str)}
